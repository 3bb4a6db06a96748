"""Errors of the archive, and what SQLite's own errors mean for the one who holds the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from tenants.exceptions import KonstructError


class ArchiveError(KonstructError):
    """Base of every error that the archive raises about its file or what is in it."""


class ArchiveUnavailable(ArchiveError, OSError):
    """The file cannot be opened, read or written where it is."""


class NotAnArchive(ArchiveError, ValueError):
    """The file is something else: not SQLite, or another program's database."""


class NewerArchive(ArchiveError, ValueError):
    """The file was written by a later version of this program."""


class UnsafeArchive(ArchiveError, ValueError):
    """The file holds what would run when it is read, or takes more than its size allows."""


class IncompleteArchive(ArchiveError, ValueError):
    """The file is an archive that lacks a table which its reader needs."""


class ArchiveDamaged(ArchiveError):
    """The file is cut off, overwritten, or does not agree with itself."""


class ArchiveBusy(ArchiveError):
    """Somebody else has been writing for longer than we wait."""


class ArchiveClosed(ArchiveError):
    """The store was used after it was closed."""


class UnknownId(ArchiveError, LookupError):
    """Nothing in the archive has this id."""


class DuplicateId(ArchiveError, ValueError):
    """Something in the archive has this id already."""


class DimensionMismatch(ArchiveError, ValueError):
    """The file's vectors have another number of dimensions than asked for."""


class ModelMismatch(ArchiveError):
    """The file holds vectors of another model, which cannot be compared with this one's."""


class EmbedderError(ArchiveError, ValueError):
    """The embedder is missing, or does not answer as an embedder does."""


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise SQLite's errors about a file as ours, which say what to do.

    Errors of SQL itself, which only a programmer can put right, pass as they are.
    """
    try:
        yield
    except apsw.NotADBError as error:
        raise NotAnArchive(f"{path} is not a SQLite file: give the path of an archive") from error
    except (apsw.CorruptError, UnicodeDecodeError) as error:
        raise ArchiveDamaged(f"{path} is damaged ({error}): restore it from a copy") from error
    except apsw.TooBigError as error:
        raise UnsafeArchive(f"{path} is not read: one of its values is too large") from error
    except apsw.InterruptError as error:
        raise UnsafeArchive(
            f"{path} is not read: that takes more steps than a file of its size needs"
        ) from error
    except apsw.BusyError as error:
        raise ArchiveBusy(
            f"{path} is being written by somebody else ({error}): try again, or write in smaller"
            " transactions"
        ) from error
    except (apsw.ConnectionClosedError, apsw.CursorClosedError) as error:
        raise ArchiveClosed(f"{path} was closed: open it again") from error
    except apsw.FullError as error:
        raise ArchiveUnavailable(f"the disk that holds {path} is full: make room") from error
    except apsw.ReadOnlyError as error:
        raise ArchiveUnavailable(
            f"{path} cannot be written ({error}): check the permissions of the file and of its"
            " directory, or copy it elsewhere"
        ) from error
    except (apsw.CantOpenError, apsw.IOError, apsw.PermissionsError) as error:
        raise ArchiveUnavailable(
            f"{path} cannot be opened, read or written ({error}): check that it is a file and that"
            " you may write it and its directory"
        ) from error
