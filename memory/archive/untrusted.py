"""An archive that somebody else may have made: read and never written, and nothing of it runs."""

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from memory.archive.database import Bindings, Closing, check_size, file_path
from memory.archive.exceptions import (
    ArchiveDamaged,
    ArchiveUnavailable,
    NotAnArchive,
    explained,
)
from memory.archive.schema import require_own_schema, version_of

# Postgres makes no JSON of a row that is longer than 2**28 bytes.
MAX_VALUE_CHARACTERS = 2**28 + 2**20
# Steps of SQLite's machine that one statement may take: a row is at least ten bytes long, and to
# check one with all its indexes takes fewer than 200 steps.
STEPS_AT_LEAST = 20_000_000
STEPS_FOR_A_BYTE = 20
_STEPS_BETWEEN = 100_000

_CONFIGURATION = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION: 0,
}
_LIMITS = {apsw.SQLITE_LIMIT_LENGTH: MAX_VALUE_CHARACTERS, apsw.SQLITE_LIMIT_ATTACHED: 0}
# Chunks of 1,024 vectors that are kept at hand; vectors of different models lie in different ones.
_CHUNKS_HELD = 8
_FLOAT_BYTES = 4

_PLACES = """
SELECT embeddings.id, model_version, chunk_id, chunk_offset
FROM embeddings JOIN vectors_rowids ON vectors_rowids.rowid = number ORDER BY number
"""
_CHUNK = "SELECT vectors FROM vectors_vector_chunks00 WHERE rowid = ?"


class UntrustedArchive(Closing):
    """A whole file, opened for reading by one thread; its directory is not written either.

    Vectors are read without sqlite-vec, which would trust the tables that it finds.

    Args:
        exactly: SQL of the tables that the file has besides an archive's own.

    Raises:
        NotAnArchive, NewerArchive, ArchiveDamaged, ArchiveUnavailable: it is no archive, of a later
            version, damaged, or cannot be read.
        UnsafeArchive: its schema is not exactly an archive's.
    """

    def __init__(self, path: str | os.PathLike[str], *, exactly: str = "") -> None:
        self.path = file_path(path)
        _require_one_file(self.path)
        self._steps_left = 0
        with explained(self.path):
            self._connection = apsw.Connection(
                f"file:{quote(str(self.path))}?mode=ro&immutable=1",
                flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
            )
            try:
                self._prepare(exactly)
            except BaseException:
                self._connection.close()
                raise

    def rows(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """All rows that a query gives."""
        with self.snapshot() as connection:
            return connection.execute(sql, bindings).fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """The connection, for as many steps of SQLite's as one reading of such a file needs."""
        self._steps_left = STEPS_AT_LEAST + STEPS_FOR_A_BYTE * self.path.stat().st_size
        with explained(self.path):
            yield self._connection

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _prepare(self, exactly: str) -> None:
        connection = self._connection
        for option, value in _CONFIGURATION.items():
            connection.config(option, value)
        for limit, value in _LIMITS.items():
            connection.limit(limit, value)
        connection.set_progress_handler(self._spend, _STEPS_BETWEEN)
        with self.snapshot():
            for pragma in ("query_only", "cell_size_check"):
                connection.pragma(pragma, True)
            connection.pragma("mmap_size", 0)
            check_size(connection, self.path)
            if not version_of(connection, self.path):
                raise NotAnArchive(f"{self.path} is empty: give the path of an archive")
            require_own_schema(connection, self.path, exactly=exactly)
        with self.snapshot():
            # The first error ends it: pages that are met again and again are such.
            (found,) = connection.execute("PRAGMA integrity_check(1)").fetchall()[0]
            if found != "ok":
                raise ArchiveDamaged(f"{self.path} is damaged: {found}; restore it from a copy")

    def _spend(self) -> bool:
        """Called after so many steps; true ends the statement."""
        self._steps_left -= _STEPS_BETWEEN
        return self._steps_left < 0


def _require_one_file(path: Path) -> None:
    """A file of its own, without a log beside it that holds part of the data."""
    if not path.is_file():
        raise ArchiveUnavailable(f"{path} is not a file: give the path of an archive")
    for suffix in ("-wal", "-journal"):
        beside = Path(f"{path}{suffix}")
        if beside.exists() and beside.stat().st_size:
            raise ArchiveUnavailable(
                f"{beside.name} beside {path} holds part of its data: open the archive once with"
                " MemoryManager where you trust it, and close it"
            )


def stored_vectors(connection: apsw.Connection) -> Iterator[tuple[str, str, bytes]]:
    """Yield id, model and vector of each embedding, in the order in which they were stored.

    They are read from the tables of vec0 (sqlite-vec 0.1) without sqlite-vec, which would trust the
    values in them.

    Raises:
        ArchiveDamaged: a vector does not stand where the file says.
    """
    dimensions = connection.execute("SELECT value FROM properties WHERE name = 'dimensions'").get
    size = _FLOAT_BYTES * dimensions if isinstance(dimensions, int) else 0
    chunks: OrderedDict[int, bytes] = OrderedDict()
    for id, model_version, chunk, offset in connection.execute(_PLACES):
        if chunk not in chunks:
            found = connection.execute(_CHUNK, (chunk,)).get
            chunks[chunk] = found if isinstance(found, bytes) else b""
            if len(chunks) > _CHUNKS_HELD:
                chunks.popitem(last=False)
        chunks.move_to_end(chunk)
        place = offset * size if isinstance(offset, int) else -1
        vector = chunks[chunk][place : place + size] if place >= 0 else b""
        if not size or len(vector) != size:
            raise ArchiveDamaged(f"the vector of {id!r} does not stand where the file says")
        yield id, model_version, vector
