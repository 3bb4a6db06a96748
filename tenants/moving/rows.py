"""Rows of a tenant's schema over the owner's sessions: reading, copying and comparing them.

The sessions are beside this thread's connections and enter no tenant.

Postgres refuses a statement here rather than let a policy hide rows from it (`row_security`): a
copy through a policy that shows nothing copies nothing, and reports success.

Rows that have changed since a snapshot are rows of transactions that had not ended then, by their
`xmin`. Rows that were deleted since are noticed by the number of rows.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

import psycopg
from django.db import connections
from psycopg import sql

from tenants.exceptions import KonstructError
from tenants.postgresql.base import DatabaseWrapper

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
# Of all rows of a table in any order: how many, and two sums of the first 8 bytes of each digest.
_SUMS: Final = (
    "SELECT count(*), bit_xor(digest), sum(digest) FROM (SELECT ('x' || encode(substr("
    "sha256(record_send(ROW({0.digested}))), 1, 8), 'hex'))::bit(64)::bigint AS digest"
    " FROM {0.name}) AS digests"
)
_SINCE: Final = (
    "SELECT count(*), coalesce(jsonb_agg({0.key}) FILTER (WHERE age(xmin) <= age('{1}'::xid)),"
    " '[]')::text FROM {0.name}"
)
_LINES: Final = "SELECT {0.key}::text, sha256(record_send(ROW({0.digested}))) FROM {0.name}"

Session = psycopg.Connection[Any]
# Keys of rows with digests of their values.
Lines = dict[str, bytes]
# Called with the number of rows that have been copied.
Copied = Callable[[int], object]


@contextmanager
def session_on(server: str) -> Iterator[Session]:
    """Have a session of this process' role on a server, in autocommit; closed, it is rolled back.

    Errors of the driver that leave the block are Django's.

    Raises:
        ServerDown: the server takes no connections.
    """
    wrapper = cast(DatabaseWrapper, connections[server]).copy()
    try:
        wrapper.ensure_connection()
        with wrapper.wrap_database_errors:
            yield wrapper.connection
    finally:
        wrapper.close()


def run(session: Session, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a statement; the rows that it returns. Without values it may be several statements."""
    cursor = session.execute(statement.encode(), values or None)
    return cursor.fetchall() if cursor.description else []


def quoted(*names: str) -> str:
    """Names as SQL has them, such as "schema"."table"."""
    return sql.Identifier(*names).as_string()


def literal(value: object) -> str:
    """A value as SQL has it, for statements that take no values."""
    return sql.Literal(value).as_string()


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


def snapshot_of(session: Session) -> str:
    """Begin to read what is there at this moment; the first transaction that had not ended."""
    run(session, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    return str(run(session, "SELECT pg_snapshot_xmin(pg_current_snapshot())::xid::text")[0][0])


def sums_of(session: Session, table: Table) -> tuple[int, int, int]:
    """What two tables are compared by as a whole: equal if all rows are."""
    ((count, xor, total),) = run(session, _SUMS.format(table))
    return count, xor, total


def count_of(session: Session, table: Table) -> int:
    """How many rows a table has."""
    return int(run(session, f"SELECT count(*) FROM {table.name}")[0][0])  # noqa: S608


def changed_since(session: Session, table: Table, snapshot: str) -> tuple[int, list[str]]:
    """How many rows a table has, and the keys of those that were written since a snapshot."""
    ((count, keys),) = run(session, _SINCE.format(table, snapshot))
    return count, [json.dumps(key) for key in json.loads(keys)]


def lines_of(session: Session, table: Table, keys: Sequence[str] | None = None) -> Lines:
    """The rows of a table with these keys, or all of them."""
    statement = _LINES.format(table)
    if keys is None:
        return dict(run(session, statement))
    return dict(run(session, f"{statement} WHERE {table.chosen}", _list_of(keys)))


def copy_rows(
    source: Session,
    target: Session,
    table: Table,
    *,
    keys: Sequence[str] | None = None,
    copied: Copied = lambda number: None,
) -> None:
    """Copy the rows with these keys, or all into a table that this transaction has emptied."""
    rows = f"SELECT {table.columns} FROM {table.name}"  # noqa: S608
    options = "FORMAT binary"
    if keys is None:
        options += ", FREEZE"
    else:
        rows += f" WHERE {table.chosen}"
    read = f"COPY ({rows}) TO STDOUT (FORMAT binary)".encode()
    write = f"COPY {table.name} ({table.columns}) FROM STDIN ({options})".encode()
    with source.cursor() as reading, target.cursor() as writing:
        values = None if keys is None else [_list_of(keys)]
        with reading.copy(read, values) as out, writing.copy(write) as into:
            for block in out:
                into.write(block)
                copied(1)


def replace_rows(source: Session, target: Session, table: Table, keys: Sequence[str]) -> None:
    """Let the copy have the rows with these keys as the source has them, or not at all."""
    if keys:
        run(target, f"DELETE FROM {table.name} WHERE {table.chosen}", _list_of(keys))  # noqa: S608
        copy_rows(source, target, table, keys=keys)


def differing_keys(source: Session, target: Session, table: Table) -> list[str]:
    """The keys of all rows that only one of the two has, or that are not equal."""
    here, there = lines_of(source, table), lines_of(target, table)
    return [key for key in here.keys() | there.keys() if here.get(key) != there.get(key)]


def copy_sequences(source: Session, target: Session, schema: str, names: Sequence[str]) -> None:
    """Let the sequences of the copy go on where those of the source are."""
    for name in names:
        sequence = quoted(schema, name)
        (state,) = run(source, f"SELECT last_value, is_called FROM {sequence}")  # noqa: S608
        run(target, "SELECT setval(%s::regclass, %s, %s)", sequence, *state)


def _list_of(keys: Sequence[str]) -> str:
    return f"[{', '.join(keys)}]"
