"""The archive's tables and their migrations.

`PRAGMA user_version` is the number of migrations that a file has. Each is one transaction, so that
a process killed in the middle leaves the file at the version before. A released migration is never
changed; another one is added.
"""

import time
from pathlib import Path

import apsw

from memory.archive import database
from memory.archive.database import write_transaction
from memory.archive.exceptions import NewerArchive, NotAnArchive

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
# describes its rows. number is the vector's rowid.
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

# The message that a vector was made of. It may be in another file.
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


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Migrate a file that is empty or of an earlier version.

    Raises:
        NotAnArchive: the file is another program's database; it is not changed.
        NewerArchive: the file has migrations that this program does not know; it is not changed.
    """
    if version_of(connection, path) == len(MIGRATIONS):
        return
    # Only a new file takes it, and only before the next line.
    connection.pragma("page_size", _PAGE_SIZE)
    _write_ahead(connection)
    # Ends: each turn raises the version by one, up to the last migration.
    while True:
        with write_transaction(connection):
            # Read again inside the transaction: another process may have migrated the file.
            version = version_of(connection, path)
            if version == len(MIGRATIONS):
                return
            connection.execute(MIGRATIONS[version])
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", version + 1)


def recorded_dimensions(connection: apsw.Connection) -> int | None:
    """Return the dimensions of the file's vectors; None if it has no table for them yet."""
    dimensions: int | None = connection.execute(
        "SELECT value FROM properties WHERE name = 'dimensions'"
    ).get
    return dimensions


def create_vector_table(connection: apsw.Connection, dimensions: int) -> int:
    """Create the table of vectors unless it exists, and return its number of dimensions.

    The caller opens the transaction. It is no migration, since the user chooses the dimensions.
    """
    existing = recorded_dimensions(connection)
    if existing is None:
        connection.execute(_VECTORS.format(dimensions=dimensions))
        connection.execute("INSERT INTO properties VALUES ('dimensions', ?)", (dimensions,))
    return dimensions if existing is None else existing


def version_of(connection: apsw.Connection, path: Path) -> int:
    """Return the number of migrations that a file has, 0 if it is empty.

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

    SQLite does not apply the busy timeout to this statement.
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
