"""Connections to one archive: one for each thread that uses it, in any number of processes."""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import sqlite_vec

from memory.archive.exceptions import (
    ArchiveClosed,
    ArchiveDamaged,
    ArchiveUnavailable,
    NotAnArchive,
    explained,
)
from memory.archive.transactions import reading, writing
from memory.exceptions import InvalidArgument

# How long a writer waits for the others. A batch of 10,000 messages is written in about a second.
BUSY_TIMEOUT_MS = 30_000

Bindings = tuple[Any, ...] | dict[str, Any]


class Connections:
    """SQLite connections with sqlite-vec, in write-ahead mode: readers and a writer do not wait.

    `prepare` is called with the first connection, before any other can be made.
    """

    def __init__(
        self, path: str | os.PathLike[str], prepare: Callable[[apsw.Connection, Path], None]
    ) -> None:
        self.path = _file_path(path)
        self._closed = False
        self._begin()
        _instances.add(self)
        with explained(self.path):
            connection = self._open()
            try:
                _check_size(connection, self.path)
                prepare(connection, self.path)
            except BaseException:
                connection.close()
                raise
            self._local.connection = connection

    def rows(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """All rows that a query gives."""
        with explained(self.path):
            return self._connection().execute(sql, bindings).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """All that is written inside, or nothing of it. Inside another one: a savepoint."""
        with explained(self.path), writing(self._connection()) as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """All that is read inside is of one moment. Nobody waits for it."""
        with explained(self.path), reading(self._connection()) as connection:
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

    def _connection(self) -> apsw.Connection:
        if self._closed:
            raise ArchiveClosed(f"{self.path} was closed: open it again")
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._open()
        return connection

    def _open(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.path))
        self._all.add(connection)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.enable_load_extension(False)
        connection.pragma("foreign_keys", True)
        return connection

    def _leave_to_parent(self) -> None:
        # SQLite's connections must be neither used nor closed in a forked process.
        _inherited.extend(self._all)
        self._begin()


_instances: weakref.WeakSet[Connections] = weakref.WeakSet()
_inherited: list[apsw.Connection] = []


def _file_path(path: str | os.PathLike[str]) -> Path:
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise InvalidArgument(f"path={path!r} is not the path of a file") from None
    if name in {"", ":memory:"} or "\x00" in name:
        raise InvalidArgument(
            f"path={name!r} is not the path of a file: threads and processes share an archive"
            " through its file; for a throw-away one use a temporary directory"
        )
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


def _check_size(connection: apsw.Connection, path: Path) -> None:
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
