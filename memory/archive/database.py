"""The SQLite connection of one archive, shared by threads, and its transactions.

Not apsw's `with connection` for the outermost transaction: it waits for another writer without
releasing the GIL (seen with apsw 3.54). If that writer is a thread of this process, the wait only
ends with the timeout.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import sqlite_vec

from memory.archive.exceptions import ArchiveClosed, ArchiveUnavailable, raise_archive_errors
from memory.exceptions import InvalidArgument

# Seconds that a writer waits for other processes. 10,000 messages are written in about a second.
BUSY_TIMEOUT_MS = 30_000
# The path of an archive without a file.
IN_MEMORY = ":memory:"

Bindings = tuple[Any, ...] | dict[str, Any]


class Database(AbstractContextManager["Any"]):
    """One connection with sqlite-vec, in write-ahead mode. A lock serializes the threads.

    Args:
        path: the file; it is created if it does not exist. ":memory:" for no file.
        migrate: called with the new connection and the path; may raise to refuse the file.

    Raises:
        InvalidArgument: `path` cannot be a path.
        ArchiveUnavailable: the file cannot be opened.
    """

    def __init__(
        self, path: str | os.PathLike[str], migrate: Callable[[apsw.Connection, Path], None]
    ) -> None:
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
                migrate(connection, self.path)
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
    """Run the block in a transaction with the write lock, or in a savepoint of an open one."""
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
