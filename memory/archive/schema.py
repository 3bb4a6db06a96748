"""The archive's tables, their migrations, and the check that a file's schema is an archive's.

`PRAGMA user_version` is the number of migrations that a file has. Each is one transaction, so that
a process killed in the middle leaves the file at the version before. A released migration is never
changed; another one is added.

SQLite executes a file's schema: a view in the place of a table can run for ever, a trigger changes
other rows, a virtual table reads files by its own code. A file with another schema is refused.
"""

import re
import time
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import sqlite_vec

from memory.archive import database
from memory.archive.database import writing
from memory.archive.exceptions import IncompleteArchive, NewerArchive, NotAnArchive, UnsafeArchive

# "Knst": tells an archive from any other SQLite file. See SQLite's `PRAGMA application_id`.
APPLICATION_ID = 0x4B6E7374

_CONVERSATIONS = """
CREATE TABLE conversations (
    id TEXT PRIMARY KEY NOT NULL,
    title TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}' CHECK (json_type(metadata) = 'object')
) STRICT;
CREATE INDEX conversations_latest ON conversations (updated_at);

-- position is the order of insertion. embedding_id has no foreign key: the vectors may be kept in a
-- file of their own.
CREATE TABLE messages (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    content TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    embedding_id TEXT UNIQUE
) STRICT;
CREATE INDEX messages_in_order ON messages (conversation_id, timestamp, position);
"""

# A vec0 table cannot be counted, or joined by text, at the speed of an ordinary one: `embeddings`
# says what its rows are. number is the vector's rowid.
_EMBEDDINGS = """
CREATE TABLE properties (name TEXT PRIMARY KEY NOT NULL, value ANY NOT NULL) STRICT;

CREATE TABLE embeddings (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    model_version TEXT NOT NULL
) STRICT;
CREATE INDEX embeddings_by_model ON embeddings (model_version);

CREATE TRIGGER message_takes_its_vector_along AFTER DELETE ON messages
WHEN OLD.embedding_id IS NOT NULL
BEGIN
    DELETE FROM embeddings WHERE id = OLD.embedding_id;
END;

CREATE TRIGGER embedding_is_forgotten_by_its_message AFTER DELETE ON embeddings
BEGIN
    UPDATE messages SET embedding_id = NULL WHERE embedding_id = OLD.id;
END;
"""

# The message that a vector was made of, as who stored it named it: it may be kept elsewhere.
_MESSAGES_OF_VECTORS = """
ALTER TABLE embeddings ADD COLUMN message_id TEXT;
CREATE INDEX embeddings_by_message ON embeddings (message_id) WHERE message_id IS NOT NULL;

DROP TRIGGER message_takes_its_vector_along;
CREATE TRIGGER message_takes_its_vectors_along AFTER DELETE ON messages
BEGIN
    DELETE FROM embeddings WHERE id = OLD.embedding_id OR message_id = OLD.id;
END;
"""

MIGRATIONS = (_CONVERSATIONS, _EMBEDDINGS, _MESSAGES_OF_VECTORS)

# vec0 keeps 1,024 vectors in one value: hundreds of pages of SQLite's default size. With 16 KiB a
# search of 30,000 vectors takes 19 ms of processor time instead of 23, an insert a quarter less.
_PAGE_SIZE = 16384

# Partitioned by model, since only vectors of one model can be compared: a search reads no other.
_VECTORS = """
CREATE VIRTUAL TABLE vectors USING vec0 (
    model_version TEXT PARTITION KEY,
    embedding FLOAT[{dimensions}] distance_metric=cosine
);
CREATE TRIGGER embedding_takes_its_vector_along AFTER DELETE ON embeddings
BEGIN
    DELETE FROM vectors WHERE rowid = OLD.number;
END;
"""

# type, name, tbl_name and SQL of sqlite_schema; white space in the SQL is one space.
Entry = tuple[str, str, str, str | None]

# Far more than an archive has.
MAX_SCHEMA_ENTRIES = 1000
_DIMENSIONS = re.compile(r"embedding FLOAT\[(\d{1,4})\]")
# vec0 keeps its rows in ordinary tables of these names, which differ between its versions.
_OF_VEC0 = ("vectors_", "sqlite_autoindex_vectors_")
# SQLite's own, where a table counts its rows.
_SEQUENCE: Entry = (
    "table", "sqlite_sequence", "sqlite_sequence", "CREATE TABLE sqlite_sequence(name,seq)"
)  # fmt: skip
# SQLite goes by the SQL, whatever the type beside it says.
_TABLE_OR_INDEX = re.compile(r"CREATE (?:TABLE|INDEX|UNIQUE INDEX) ")


def prepare(connection: apsw.Connection, path: Path) -> None:
    """Make the file an archive of this version, if it is empty or an earlier one.

    Raises:
        NotAnArchive: the file is another program's database; it is left as it was.
        NewerArchive: the file has steps that this program does not know; it is left as it was.
    """
    if version_of(connection, path) == len(MIGRATIONS):
        return
    # Heeded by a new file alone, and not after the next line.
    connection.pragma("page_size", _PAGE_SIZE)
    _write_ahead(connection)
    # Ends: each turn raises the version by one, up to the last migration.
    while True:
        with writing(connection):
            # Asked again inside the transaction: another process may have been faster.
            version = version_of(connection, path)
            if version == len(MIGRATIONS):
                return
            connection.execute(MIGRATIONS[version])
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", version + 1)


def recorded_dimensions(connection: apsw.Connection) -> int | None:
    """Dimensions of the file's vectors, or None if it has no table for them yet."""
    dimensions: int | None = connection.execute(
        "SELECT value FROM properties WHERE name = 'dimensions'"
    ).get
    return dimensions


def make_vector_table(connection: apsw.Connection, dimensions: int) -> int:
    """Make the table of vectors inside the caller's transaction, unless there is one by now.

    Its dimensions are returned. It is no step of MIGRATIONS, because they are the user's choice.
    """
    recorded = recorded_dimensions(connection)
    if recorded is None:
        connection.execute(_VECTORS.format(dimensions=dimensions))
        connection.execute("INSERT INTO properties VALUES ('dimensions', ?)", (dimensions,))
    return dimensions if recorded is None else recorded


def version_of(connection: apsw.Connection, path: Path) -> int:
    """The steps that a file has taken; none if it is empty.

    Raises:
        NotAnArchive, NewerArchive: as for `prepare`.
    """
    application: int = connection.pragma("application_id")
    version: int = connection.pragma("user_version")
    if application != APPLICATION_ID or version < 0:
        if application or version or connection.execute("SELECT 1 FROM sqlite_schema").get:
            raise NotAnArchive(
                f"{path} is the SQLite database of another program: give the path of an archive,"
                " or of a file that does not exist yet"
            )
        return 0
    if version > len(MIGRATIONS):
        raise NewerArchive(
            f"{path} has schema version {version}; this program knows up to {len(MIGRATIONS)}:"
            " update Konstruct to read it"
        )
    return version


def _write_ahead(connection: apsw.Connection) -> None:
    """Turn the write-ahead log on; the mode stays with the file.

    SQLite does not wait for others here, whatever the busy timeout is.
    """
    deadline = time.monotonic() + database.BUSY_TIMEOUT_MS / 1000
    # Ends: at the deadline.
    while True:
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


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
    steps = MIGRATIONS[: connection.pragma("user_version")]
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
        "SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT ?", (MAX_SCHEMA_ENTRIES + 1,)
    ).fetchall()
    texts = all(isinstance(value, str) for row in rows for value in row[:3])
    if len(rows) > MAX_SCHEMA_ENTRIES or not texts:
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
            make_vector_table(connection, dimensions)
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
