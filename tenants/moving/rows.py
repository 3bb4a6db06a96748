"""Reads, copies and compares the rows of a tenant's schema in sessions of the owner's role.

The sessions are separate from this thread's connections, and enter no tenant.

With `row_security = off` Postgres refuses a statement from which a policy would hide rows.
Otherwise a copy through a policy could copy nothing and report success.

A row has changed since a snapshot if its `xmin` is of a transaction that had not ended then.
Deleted rows are found by the number of rows.
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

# Values of an extension's types are digested in their binary form: the OID of such a type differs
# between servers, and would be part of the row.
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
# Indexes that are much faster to build than to update row by row.
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
# The number of rows of a table, and two sums of the first 8 bytes of their digests, in any order.
_SUMS: Final = (
    "SELECT count(*), bit_xor(digest), sum(digest) FROM (SELECT ('x' || encode(substr("
    "sha256(record_send(ROW({0.digest_columns}))), 1, 8), 'hex'))::bit(64)::bigint AS digest"
    " FROM {0.name}) AS digests"
)
_SINCE: Final = (
    "SELECT count(*), coalesce(jsonb_agg({0.key}) FILTER (WHERE age(xmin) <= age('{1}'::xid)),"
    " '[]')::text FROM {0.name}"
)
_LINES: Final = "SELECT {0.key}::text, sha256(record_send(ROW({0.digest_columns}))) FROM {0.name}"

Session = psycopg.Connection[Any]
# Keys of rows with digests of their values.
RowDigests = dict[str, bytes]
# Called with the number of rows that have been copied.
OnCopied = Callable[[int], object]


@contextmanager
def session_on(server: str) -> Iterator[Session]:
    """Open a session of this process' role on a server, in autocommit. It is closed at the end.

    The driver's errors are raised as Django's.

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
    """Run a statement, or several if there are no values, and return the rows."""
    cursor = session.execute(statement.encode(), values or None)
    return cursor.fetchall() if cursor.description else []


def quoted(*names: str) -> str:
    """Return a quoted name, such as "schema"."table"."""
    return sql.Identifier(*names).as_string()


def literal(value: object) -> str:
    """Return a quoted value, for statements that take no parameters."""
    return sql.Literal(value).as_string()


@dataclass(frozen=True)
class Table:
    """A table of a schema, with expressions for its rows."""

    name: str  # qualified and quoted, as all names here
    columns: str
    digest_columns: str
    types: tuple[str, ...]
    key: str  # a JSON array
    key_condition: str  # a condition: the key is among the given JSON arrays
    has_begun_at: bool  # whether it has a column begun_at, the time at which a worker began


def tables_of(session: Session, schema: str) -> list[Table]:
    """Return the tables of a schema.

    Raises:
        KonstructError: a table has no primary key.
    """
    found = []
    for name, columns, digested, types, key, begun in run(session, _TABLES, schema):
        if not key:
            raise KonstructError(f"the table {schema}.{name} has no primary key")
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
    """Return the names of a schema's sequences."""
    return [name for (name,) in run(session, _SEQUENCES, schema)]


def slow_indexes_of(session: Session, schema: str) -> list[tuple[str, str]]:
    """Return the indexes to build after the rows are copied: names, and the statements."""
    return [
        (quoted(schema, name), made_by) for name, made_by in run(session, _SLOW_INDEXES, schema)
    ]


def layout_of(session: Session, schema: str) -> set[str]:
    """Return all columns with their types, and all sequences, to compare two schemas."""
    columns = {column for table in tables_of(session, schema) for column in table.types}
    return columns.union(sequences_of(session, schema))


def alter_each(tables: Sequence[Table], clause: str) -> str:
    """Return a script that alters all tables."""
    return ";".join(f"ALTER TABLE {table.name} {clause}" for table in tables)


def snapshot_of(session: Session) -> str:
    """Begin to read a snapshot, and return the oldest transaction that has not ended."""
    run(session, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    return str(run(session, "SELECT pg_snapshot_xmin(pg_current_snapshot())::xid::text")[0][0])


def checksums(session: Session, table: Table) -> tuple[int, int, int]:
    """Return the number of rows and two checksums, which are equal if all rows are."""
    ((count, xor, total),) = run(session, _SUMS.format(table))
    return count, xor, total


def count_of(session: Session, table: Table) -> int:
    """Return the number of rows of a table."""
    return int(run(session, f"SELECT count(*) FROM {table.name}")[0][0])  # noqa: S608


def changed_since(session: Session, table: Table, snapshot: str) -> tuple[int, list[str]]:
    """Return the number of rows, and the keys of rows written since a snapshot."""
    ((count, keys),) = run(session, _SINCE.format(table, snapshot))
    return count, [json.dumps(key) for key in json.loads(keys)]


def row_digests(session: Session, table: Table, keys: Sequence[str] | None = None) -> RowDigests:
    """Return keys and digests of the rows with these keys, or of all rows."""
    statement = _LINES.format(table)
    if keys is None:
        return dict(run(session, statement))
    return dict(run(session, f"{statement} WHERE {table.key_condition}", _list_of(keys)))


def copy_rows(
    source: Session,
    target: Session,
    table: Table,
    *,
    keys: Sequence[str] | None = None,
    copied: OnCopied = lambda number: None,
) -> None:
    """Copy the rows with these keys, or all rows into a table that this transaction has emptied."""
    rows = f"SELECT {table.columns} FROM {table.name}"  # noqa: S608
    options = "FORMAT binary"
    if keys is None:
        options += ", FREEZE"
    else:
        rows += f" WHERE {table.key_condition}"
    read = f"COPY ({rows}) TO STDOUT (FORMAT binary)".encode()
    write = f"COPY {table.name} ({table.columns}) FROM STDIN ({options})".encode()
    with source.cursor() as reading, target.cursor() as writing:
        values = None if keys is None else [_list_of(keys)]
        with reading.copy(read, values) as out, writing.copy(write) as into:
            for block in out:
                into.write(block)
                copied(1)


def replace_rows(source: Session, target: Session, table: Table, keys: Sequence[str]) -> None:
    """Replace the rows with these keys in the copy by those of the source."""
    if keys:
        run(target, f"DELETE FROM {table.name} WHERE {table.key_condition}", _list_of(keys))  # noqa: S608
        copy_rows(source, target, table, keys=keys)


def differing_keys(source: Session, target: Session, table: Table) -> list[str]:
    """Return the keys of rows that differ, or that only one of the two has."""
    here, there = row_digests(source, table), row_digests(target, table)
    return [key for key in here.keys() | there.keys() if here.get(key) != there.get(key)]


def copy_sequences(source: Session, target: Session, schema: str, names: Sequence[str]) -> None:
    """Set the sequences of the copy to the values of the source."""
    for name in names:
        sequence = quoted(schema, name)
        (state,) = run(source, f"SELECT last_value, is_called FROM {sequence}")  # noqa: S608
        run(target, "SELECT setval(%s::regclass, %s, %s)", sequence, *state)


def _list_of(keys: Sequence[str]) -> str:
    return f"[{', '.join(keys)}]"
