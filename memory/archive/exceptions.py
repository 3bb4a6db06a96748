"""Errors of the archive."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from tenants.exceptions import KonstructError


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
