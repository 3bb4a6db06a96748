"""Connections to one archive, one for each thread that uses it, and their transactions.

Not apsw's `with connection`: that waits for another writer without letting go of the GIL (seen with
apsw 3.54), and if the writer is a thread of this process, it waits in vain until the time is up.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import apsw
import sqlite_vec

from memory.archive.exceptions import (
    ArchiveClosed,
    ArchiveDamaged,
    ArchiveUnavailable,
    NotAnArchive,
    explained,
)
from memory.exceptions import InvalidArgument

# How long a writer waits for the others. A batch of 10,000 messages is written in about a second.
BUSY_TIMEOUT_MS = 30_000

# The path of an archive that has no file.
IN_MEMORY = ":memory:"
_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI

Bindings = tuple[Any, ...] | dict[str, Any]


class Closing(AbstractContextManager["Any"]):
    """An object that holds a file: its `with` block closes it."""

    def close(self) -> None:
        """Close the file."""
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def writing(connection: apsw.Connection) -> Iterator[apsw.Connection]:
    """All that is written inside, or nothing of it. Inside another transaction: a savepoint.

    The write lock is taken at the beginning: a transaction that reads first and writes later cannot
    wait for another writer.
    """
    with _transaction(connection, "BEGIN IMMEDIATE"):
        yield connection


@contextmanager
def reading(connection: apsw.Connection) -> Iterator[apsw.Connection]:
    """All that is read inside is of one moment; nobody waits for it."""
    with _transaction(connection, "BEGIN DEFERRED"):
        yield connection


@contextmanager
def _transaction(connection: apsw.Connection, begin: str) -> Iterator[None]:
    if connection.in_transaction:
        begin, undo, end = "SAVEPOINT inner", "ROLLBACK TO inner; RELEASE inner", "RELEASE inner"
    else:
        undo, end = "ROLLBACK", "COMMIT"
    connection.execute(begin)
    try:
        yield
        connection.execute(end)
    except BaseException:
        # A full disk, for one, has made SQLite roll back by itself.
        if connection.in_transaction:
            connection.execute(undo)
        raise


class Connections:
    """SQLite connections with sqlite-vec, in write-ahead mode: readers and a writer do not wait.

    `prepare` is called with the first connection, before any other can be made. With ":memory:" as
    path there is no file, and one database for all threads that use this object.
    """

    def __init__(
        self, path: str | os.PathLike[str], prepare: Callable[[apsw.Connection, Path], None]
    ) -> None:
        if str(path) == IN_MEMORY:
            # A database of this name is one for all connections of the process that open it.
            self.path, self._address = Path(IN_MEMORY), f"file:/{uuid4()}?vfs=memdb"
        else:
            self.path = file_path(path)
            self._address = str(self.path)
        self._closed = False
        self._begin()
        _instances.add(self)
        with explained(self.path):
            connection = self._open()
            try:
                if not self.is_in_memory:
                    check_size(connection, self.path)
                prepare(connection, self.path)
            except BaseException:
                connection.close()
                raise
            self._local.connection = self._first = connection

    @property
    def is_in_memory(self) -> bool:
        """Whether there is no file: all is gone when it is closed."""
        return self.path == Path(IN_MEMORY)

    def rows(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """All rows that a query gives."""
        with explained(self.path):
            return self.connection().execute(sql, bindings).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """All that is written inside, or nothing of it. Inside another one: a savepoint."""
        with explained(self.path), writing(self.connection()) as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """All that is read inside is of one moment. Nobody waits for it."""
        with explained(self.path), reading(self.connection()) as connection:
            yield connection

    def close(self) -> None:
        """Close every thread's connection; whoever uses the archive after that gets an error."""
        self._closed = True
        for connection in list(self._all):
            # One that runs a statement at this moment is dropped by its thread after that.
            with suppress(apsw.ThreadingViolationError):
                connection.close()
        self._begin()

    def _begin(self) -> None:
        self._local = threading.local()
        # A thread's connection goes with the thread.
        self._all: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()

    def connection(self) -> apsw.Connection:
        """This thread's connection, made now if it has none.

        Raises:
            ArchiveClosed: the archive was closed.
        """
        if self._closed:
            raise ArchiveClosed(f"{self.path} was closed: open it again")
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._open()
        return connection

    def _open(self) -> apsw.Connection:
        connection = apsw.Connection(self._address, flags=_FLAGS)
        self._all.add(connection)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.enable_load_extension(False)
        connection.pragma("foreign_keys", True)
        # A cell that does not lie within its page is found when the page is read.
        connection.pragma("cell_size_check", True)
        return connection

    def _leave_to_parent(self) -> None:
        # SQLite's connections must be neither used nor closed in a forked process.
        _inherited.extend(self._all)
        self._begin()


_instances: weakref.WeakSet[Connections] = weakref.WeakSet()
_inherited: list[apsw.Connection] = []


def file_path(path: str | os.PathLike[str]) -> Path:
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise InvalidArgument(f"path={path!r} is not the path of a file") from None
    if name in {"", IN_MEMORY} or "\x00" in name:
        raise InvalidArgument(f"path={name!r} is not the path of a file")
    try:
        resolved = Path(name).resolve()
        is_directory, has_directory = resolved.is_dir(), resolved.parent.is_dir()
    except OSError as error:
        raise ArchiveUnavailable(f"path={name!r} cannot be used: {error}") from error
    if is_directory:
        raise ArchiveUnavailable(f"{resolved} is a directory: give the path of a file in it")
    if not has_directory:
        raise ArchiveUnavailable(
            f"{resolved.parent}, the directory of archive {resolved.name!r}, does not exist:"
            " create it first"
        )
    return resolved


def check_size(connection: apsw.Connection, path: Path) -> None:
    """Find what SQLite does not: a file that ends within its first or its last page.

    What the write-ahead log holds need not be in the file yet, so that it is looked at first.
    """
    pages = connection.pragma("page_count")
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        return
    size, expected = path.stat().st_size, pages * connection.pragma("page_size")
    if size < expected:
        raise ArchiveDamaged(
            f"{path} is cut off: it has {size} of {expected} bytes; restore it from a copy"
        )
    if size and not pages:
        raise NotAnArchive(f"{path} is not a SQLite file: give the path of an archive")


def _after_fork_in_child() -> None:
    for connections in list(_instances):
        connections._leave_to_parent()


os.register_at_fork(after_in_child=_after_fork_in_child)
