"""Copying a schema's rows between two sessions, and comparing them.

Postgres refuses a statement here rather than let a policy hide rows from it (`row_security`): a
copy through a policy that shows nothing copies nothing, and reports success.

What has changed since a snapshot are rows of transactions that had not ended then, by their `xmin`,
and rows that are gone, which the number of rows tells.
"""

import json
from collections.abc import Callable, Sequence
from typing import Final

from tenants.moving.sessions import Session, quoted, run
from tenants.moving.tables import Table

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

# Keys of rows with digests of what they hold.
Lines = dict[str, bytes]
# Called with the number of rows that have been copied.
Copied = Callable[[int], object]


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
