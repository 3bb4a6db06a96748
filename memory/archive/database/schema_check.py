"""Whether the schema of a file is an archive's own.

SQLite runs what a file's schema says: a view in the place of a table can go on for ever, a trigger
changes what nobody asked to change, a virtual table reads files in ways of its own.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import sqlite_vec

from memory.archive.database import schema
from memory.archive.exceptions import IncompleteArchive, UnsafeArchive

# type, name, tbl_name and SQL of sqlite_schema; white space in the SQL is one space.
Entry = tuple[str, str, str, str | None]

# Far more than an archive has.
MOST_ENTRIES = 1000
_DIMENSIONS = re.compile(r"embedding FLOAT\[(\d{1,4})\]")
# vec0 keeps its rows in ordinary tables of these names, which differ between its versions.
_OF_VEC0 = ("vectors_", "sqlite_autoindex_vectors_")
# SQLite's own, where a table counts its rows.
_SEQUENCE: Entry = (
    "table", "sqlite_sequence", "sqlite_sequence", "CREATE TABLE sqlite_sequence(name,seq)"
)  # fmt: skip
# SQLite goes by the SQL, whatever the type beside it says.
_TABLE_OR_INDEX = re.compile(r"CREATE (?:TABLE|INDEX|UNIQUE INDEX) ")


def require_own_schema(
    connection: apsw.Connection, path: Path, *, exactly: str | None = None
) -> None:
    """Refuse a file whose schema holds more than an archive's tables, indexes and triggers.

    Args:
        exactly: SQL of what the file has besides; then everything must be there, and nothing else.
            Left out, it may have other ordinary tables.

    Raises:
        UnsafeArchive: it holds something else, or what is called as the archive's is not.
        IncompleteArchive: it lacks something of `exactly`.
    """
    found = _entries(connection, path)
    steps = schema.MIGRATIONS[: connection.pragma("user_version")]
    wanted = _expected(steps, _dimensions(found), exactly or "")
    own = {name for _, name, _, _ in wanted}
    for entry in found - wanted - {_SEQUENCE}:
        kind, name, table, sql = entry
        if name.startswith(_OF_VEC0):
            allowed = _holds_what_was_written(connection, name, sql)
        else:
            allowed = exactly is None and not {name, table} & own and _is_table_or_index(sql)
        if not allowed:
            raise UnsafeArchive(
                f"{path} is not read: its {kind[:20]} {name[:80]!r} is none of an archive's, or is"
                " defined in another way; take the file anew from who exported it"
            )
    if exactly is not None and (missing := wanted - found):
        kind, name, *_ = min(missing, key=str)
        raise IncompleteArchive(f"{path} has no {kind} {name!r}")


def _entries(connection: apsw.Connection, path: Path) -> frozenset[Entry]:
    rows = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT ?", (MOST_ENTRIES + 1,)
    ).fetchall()
    texts = all(isinstance(value, str) for row in rows for value in row[:3])
    if len(rows) > MOST_ENTRIES or not texts:
        raise UnsafeArchive(f"{path} is not read: its schema is not an archive's")
    return frozenset(map(_entry, rows))


def _entry(row: tuple[Any, ...]) -> Entry:
    kind, name, table, sql = row
    return kind, name, table, None if sql is None else " ".join(str(sql).split())


def _dimensions(found: frozenset[Entry]) -> int | None:
    for _, name, _, sql in found:
        if name == "vectors" and (match := _DIMENSIONS.search(sql or "")):
            return int(match[1])
    return None


@cache
def _expected(steps: tuple[str, ...], dimensions: int | None, also: str) -> frozenset[Entry]:
    """What a new file has after these steps, without what is vec0's."""
    with apsw.Connection(":memory:") as connection:
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        for step in (*steps, also):
            connection.execute(step)
        if dimensions is not None:
            schema.make_vector_table(connection, dimensions)
        rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
    return frozenset(entry for entry in map(_entry, rows) if not entry[1].startswith(_OF_VEC0)) - {
        _SEQUENCE
    }


def _holds_what_was_written(connection: apsw.Connection, name: str, sql: str | None) -> bool:
    """A table without columns that are computed when they are read, or the index of a key."""
    if sql is None:
        return True
    columns = connection.execute("SELECT hidden FROM pragma_table_xinfo(?)", (name,))
    return sql.startswith("CREATE TABLE ") and not any(hidden for (hidden,) in columns)


def _is_table_or_index(sql: str | None) -> bool:
    return sql is None or _TABLE_OR_INDEX.match(sql) is not None
