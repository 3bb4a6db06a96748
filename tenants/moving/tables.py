"""What a tenant's schema holds: its tables, what tells their rows apart, and its sequences."""

from collections.abc import Sequence
from dataclasses import dataclass

from tenants.exceptions import KonstructError
from tenants.moving.sessions import Session, quoted, run

# Values of a type that an extension has made are digested as they are sent: its number is another
# on each server, and would stand in the row.
_TABLES = """
SELECT c.relname,
       array_agg(quote_ident(a.attname) ORDER BY a.attnum) FILTER (WHERE a.attgenerated = ''),
       array_agg(CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN quote_ident(a.attname)
                 ELSE format('%%I.%%I(%%I)', t.typnamespace::regnamespace, p.proname, a.attname)
                 END ORDER BY a.attname),
       array_agg(format('%%s.%%s %%s(%%s)', c.relname, a.attname, t.typname, a.atttypmod)),
       coalesce((
           SELECT array_agg(
               ARRAY[quote_ident(k.attname), format_type(k.atttypid, k.atttypmod)] ORDER BY k.attnum
           )
           FROM pg_index AS i JOIN pg_attribute AS k
               ON k.attrelid = i.indrelid AND k.attnum = ANY (i.indkey)
           WHERE i.indrelid = c.oid AND i.indisprimary
       ), '{}'),
       EXISTS (
           SELECT FROM pg_attribute AS b
           WHERE b.attrelid = c.oid AND b.attname = 'begun_at' AND NOT b.attisdropped
       )
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type AS t ON t.oid = a.atttypid
JOIN pg_proc AS p ON p.oid = t.typsend
WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p')
GROUP BY c.oid ORDER BY c.relname
"""
# Indexes that cost much more to keep up row by row than to build.
_SLOW_INDEXES = """
SELECT c.relname, pg_get_indexdef(c.oid)
FROM pg_class AS c JOIN pg_am AS m ON m.oid = c.relam
WHERE c.relnamespace = %s::regnamespace AND c.relkind = 'i'
  AND m.amname IN ('hnsw', 'ivfflat', 'gin')
"""
_SEQUENCES = """
SELECT relname FROM pg_class
WHERE relnamespace = %s::regnamespace AND relkind = 'S' ORDER BY relname
"""


@dataclass(frozen=True)
class Table:
    """A table of a schema, with expressions for its rows."""

    name: str  # qualified and quoted, as all names here
    columns: str
    digested: str
    types: tuple[str, ...]
    key: str  # a list of JSON
    chosen: str  # a condition: the key is in the list of such lists that is given
    has_begun: bool  # rows of it are work, which says when a worker began with it


def tables_of(session: Session, schema: str) -> list[Table]:
    """The tables of a schema.

    Raises:
        KonstructError: one has no primary key.
    """
    found = []
    for name, columns, digested, types, key, begun in run(session, _TABLES, schema):
        if not key:
            raise KonstructError(f"the table {schema}.{name} has no key to tell its rows apart by")
        table = quoted(schema, name)
        expressions = ", ".join(columns), ", ".join(digested)
        texts = ", ".join(f"{column}::text" for column, _ in key)
        given = ", ".join(f"(given->>{place})::{kind}" for place, (_, kind) in enumerate(key))
        chosen = (
            f"({', '.join(column for column, _ in key)}) IN"  # noqa: S608
            f" (SELECT {given} FROM jsonb_array_elements(%s::jsonb) AS given)"
        )
        key_list = f"jsonb_build_array({texts})"
        found.append(Table(table, *expressions, tuple(types), key_list, chosen, begun))
    return found


def sequences_of(session: Session, schema: str) -> list[str]:
    """The names of a schema's sequences."""
    return [name for (name,) in run(session, _SEQUENCES, schema)]


def slow_indexes_of(session: Session, schema: str) -> list[tuple[str, str]]:
    """Indexes that are better built when the rows are there: names, and statements that do it."""
    return [
        (quoted(schema, name), made_by) for name, made_by in run(session, _SLOW_INDEXES, schema)
    ]


def layout_of(session: Session, schema: str) -> set[str]:
    """All columns with their types, and all sequences: what two schemas are compared by."""
    columns = {column for table in tables_of(session, schema) for column in table.types}
    return columns.union(sequences_of(session, schema))


def alter_each(tables: Sequence[Table], clause: str) -> str:
    """A script that alters all of the tables."""
    return ";".join(f"ALTER TABLE {table.name} {clause}" for table in tables)
