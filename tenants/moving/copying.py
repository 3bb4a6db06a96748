"""Copying a schema's rows between two sessions, and comparing them row by row.

Postgres refuses a statement here rather than let a policy hide rows from it (`row_security`): a
copy through a policy that shows nothing copies nothing, and reports success.
"""

from collections.abc import Callable, Sequence
from typing import Final

from tenants.moving.sessions import Session, quoted, run
from tenants.moving.tables import Table

# The first 16 bytes of a digest of the row, and its key. No character of it is escaped by COPY.
_LINES: Final = (
    "COPY (SELECT encode(substr(sha256(record_send(ROW({0.digested}))), 1, 16), 'hex') || ' ' ||"
    " encode(convert_to({0.key}, 'UTF8'), 'hex') FROM {0.name}) TO STDOUT"
)

# What of a table a session reads: a line for each row, which says which row it is, and its values.
Lines = set[bytes]
# Called with the number of rows that have been copied.
Copied = Callable[[int], object]


def lines_of(session: Session, table: Table) -> Lines:
    """A line for each row of a table: what two tables are compared by."""
    with session.cursor() as cursor, cursor.copy(_LINES.format(table).encode()) as lines:
        return set(b"".join(lines).splitlines())


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
        rows += f" WHERE {table.key} = ANY (%s)"
    read = f"COPY ({rows}) TO STDOUT (FORMAT binary)".encode()
    write = f"COPY {table.name} ({table.columns}) FROM STDIN ({options})".encode()
    with source.cursor() as reading, target.cursor() as writing:
        values = None if keys is None else [list(keys)]
        with reading.copy(read, values) as out, writing.copy(write) as into:
            for block in out:
                into.write(block)
                copied(1)


def catch_up(source: Session, target: Session, table: Table, there: Lines) -> Lines:
    """Bring a copy up to date, which has the rows ``there``; the lines that it has to have now."""
    here = lines_of(source, table)
    if stale := _keys(there - here):
        run(target, f"DELETE FROM {table.name} WHERE {table.key} = ANY (%s)", stale)  # noqa: S608
    if fresh := _keys(here - there):
        copy_rows(source, target, table, keys=fresh)
    return here


def copy_sequences(source: Session, target: Session, schema: str, names: Sequence[str]) -> None:
    """Let the sequences of the copy go on where those of the source are."""
    for name in names:
        sequence = quoted(schema, name)
        (state,) = run(source, f"SELECT last_value, is_called FROM {sequence}")  # noqa: S608
        run(target, "SELECT setval(%s::regclass, %s, %s)", sequence, *state)


def _keys(lines: Lines) -> list[str]:
    return [bytes.fromhex(line.split(b" ")[1].decode()).decode() for line in lines]
