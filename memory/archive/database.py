"""One SQLite file: its connection, shared by threads, its tables, and its errors.

`PRAGMA user_version` is the number of migrations that a file has. Each is one transaction, so that
a process killed in the middle leaves the file at the version before. A released migration is never
changed; another one is added.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import sqlite_vec

from memory.exceptions import InvalidArgument
from tenants.exceptions import KonstructError

# A writer waits for other processes. 10,000 messages are written in about a second.
BUSY_TIMEOUT_MS = 30_000
# The path of an archive without a file.
IN_MEMORY = ":memory:"
# "Knst": tells an archive from any other SQLite file. See SQLite's `PRAGMA application_id`.
APPLICATION_ID = 0x4B6E7374
# vec0 keeps 1,024 vectors in one value: hundreds of pages of SQLite's default size. With 16 KiB a
# search of 30,000 vectors takes 19 ms of processor time instead of 23, an insert a quarter less.
PAGE_SIZE = 16384

_TABLES = """
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

-- A vec0 table cannot be counted, or joined by text, at the speed of an ordinary one: these rows
-- describe its rows. number is the vector's rowid. The message may be in another file.
CREATE TABLE embeddings (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    model_version TEXT NOT NULL,
    message_id TEXT
) STRICT;
CREATE INDEX embeddings_by_model ON embeddings (model_version);
CREATE INDEX embeddings_by_message ON embeddings (message_id) WHERE message_id IS NOT NULL;
CREATE TRIGGER message_takes_its_vectors_along AFTER DELETE ON messages
BEGIN
    DELETE FROM embeddings WHERE id = OLD.embedding_id OR message_id = OLD.id;
END;
CREATE TRIGGER embedding_is_forgotten_by_its_message AFTER DELETE ON embeddings
BEGIN
    UPDATE messages SET embedding_id = NULL WHERE embedding_id = OLD.id;
END;
CREATE TABLE properties (name TEXT PRIMARY KEY NOT NULL, value ANY NOT NULL) STRICT;
"""
MIGRATIONS = (_TABLES,)

Bindings = tuple[Any, ...] | dict[str, Any]


class ArchiveError(KonstructError):
    """Base of all errors about an archive's file or its content."""


class ArchiveUnavailable(ArchiveError, OSError):
    """The file cannot be opened, read or written."""


class NotAnArchive(ArchiveError, ValueError):
    """The file is not SQLite, or the database of another program."""


class NewerArchive(ArchiveError, ValueError):
    """A later version of this program wrote the file."""


class ArchiveDamaged(ArchiveError):
    """The file is cut off or overwritten."""


class ArchiveBusy(ArchiveError):
    """Another process has been writing for longer than the timeout."""


class ArchiveClosed(ArchiveError):
    """The archive was used after it was closed."""


class UnknownId(ArchiveError, LookupError):
    """The archive has no record with this id."""


class DuplicateId(ArchiveError, ValueError):
    """The archive has this id already."""


class DimensionMismatch(ArchiveError, ValueError):
    """The file's vectors have another number of dimensions."""


class ModelMismatch(ArchiveError):
    """The file has vectors of another model, which cannot be compared."""


class EmbedderError(ArchiveError, ValueError):
    """The embedder is missing, or does not return one vector for each text."""


_MEANINGS: tuple[tuple[tuple[type[Exception], ...], type[ArchiveError], str], ...] = (
    ((apsw.NotADBError,), NotAnArchive, "is not a SQLite file: give the path of an archive"),
    (
        (apsw.CorruptError, UnicodeDecodeError, apsw.TooBigError, apsw.InterruptError),
        ArchiveDamaged,
        "is damaged: restore it from a copy",
    ),
    ((apsw.BusyError,), ArchiveBusy, "is being written by another process: try again"),
    ((apsw.FullError,), ArchiveUnavailable, "cannot be written: its disk is full, make room"),
    (
        (apsw.CantOpenError, apsw.IOError, apsw.PermissionsError, apsw.ReadOnlyError),
        ArchiveUnavailable,
        "cannot be opened, read or written: check the permissions of it and its directory",
    ),
)


@contextmanager
def raise_archive_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's errors about a file as errors of the archive, with a remedy.

    Other errors, such as those of the SQL itself, are not changed.
    """
    try:
        yield
    except (apsw.Error, UnicodeDecodeError) as error:
        for classes, raised, remedy in _MEANINGS:
            if isinstance(error, classes):
                raise raised(f"{path} {remedy} ({error})") from error
        raise


class Database(AbstractContextManager["Any"]):
    """One connection with sqlite-vec, in write-ahead mode. A lock serializes the threads.

    Args:
        path: the file. One that does not exist is created; one of an earlier version is migrated.
            ":memory:" for no file.

    Raises:
        InvalidArgument: `path` cannot be a path.
        ArchiveUnavailable: there is no such directory, or the file cannot be opened or written.
        NotAnArchive, ArchiveDamaged, NewerArchive: the file cannot be used; it is not changed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(IN_MEMORY) if str(path) == IN_MEMORY else _file_path(path)
        self._lock = threading.RLock()
        self._connection: apsw.Connection | None = None
        with raise_archive_errors(self.path):
            connection = apsw.Connection(str(self.path))
            try:
                connection.set_busy_timeout(BUSY_TIMEOUT_MS)
                connection.enable_load_extension(True)
                connection.load_extension(sqlite_vec.loadable_path())
                connection.enable_load_extension(False)
                connection.pragma("foreign_keys", True)
                _migrate(connection, self.path)
            except BaseException:
                connection.close()
                raise
        self._connection = connection

    @property
    def db(self) -> apsw.Connection:
        """The connection, for other SQL. Threads that share it use it inside `transaction()`.

        Raises:
            ArchiveClosed: the archive was closed.
        """
        if self._connection is None:
            raise ArchiveClosed(f"{self.path} was closed: open it again")
        return self._connection

    def rows(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        with self._lock, raise_archive_errors(self.path):
            return self.db.execute(sql, bindings).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """Write everything inside the block, or nothing if an exception leaves it.

        Other threads that share this object wait. Other objects and processes can read, but not
        write. A transaction inside another one is a savepoint.
        """
        with self._lock, raise_archive_errors(self.path), write_transaction(self.db) as connection:
            yield connection

    def close(self) -> None:
        """Close the file, after the transactions of other threads. Closing again does nothing."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def write_transaction(connection: apsw.Connection) -> Iterator[apsw.Connection]:
    """Run the block in a transaction with the write lock, or in a savepoint of an open one.

    Not apsw's `with connection` for the outermost transaction: it waits for another writer without
    releasing the GIL (seen with apsw 3.54). If that writer is a thread of this process, the wait
    only ends with the timeout.
    """
    if connection.in_transaction:
        with connection:
            yield connection
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        # SQLite itself rolls back after some errors, such as a full disk.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _file_path(path: str | os.PathLike[str]) -> Path:
    try:
        name = os.fsdecode(path)
    except TypeError:
        name = ""
    if not name or "\x00" in name:
        raise InvalidArgument(f"path={path!r} is not the path of a file")
    absolute = Path(name).absolute()
    if not absolute.parent.is_dir():
        raise ArchiveUnavailable(
            f"{absolute.parent}, the directory of archive {absolute.name!r}, does not exist:"
            " create it first"
        )
    return absolute


def _migrate(connection: apsw.Connection, path: Path) -> None:
    """Migrate a file that is empty or of an earlier version.

    Raises:
        NotAnArchive: the file is another program's database; it is not changed.
        NewerArchive: the file has migrations that this program does not know; it is not changed.
    """
    if version_of(connection, path) == len(MIGRATIONS):
        return
    # Only a new file takes it, and only before the next line.
    connection.pragma("page_size", PAGE_SIZE)
    # The mode stays with the file. SQLite does not apply the busy timeout to this statement.
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while connection.pragma("journal_mode") not in ("wal", "memory"):
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
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


def version_of(connection: apsw.Connection, path: Path) -> int:
    """Return the number of migrations that a file has, 0 if it is empty.

    Raises:
        NotAnArchive, NewerArchive: as for `Database`.
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
