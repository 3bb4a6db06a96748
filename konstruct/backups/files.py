"""The folder of a backup: complete or absent, and checked before a restore."""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import file_digest
from io import BufferedReader
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from konstruct.strict_json import NotStrictJSON, read_json
from tenants.exceptions import KonstructError
from tenants.naming import schema_name_of
from tenants.secret_keys import is_signed, signature

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
_PURPOSE: Final = b"konstruct.backup"
_NAME: Final = re.compile(r"konstruct-(\d{8}T\d{6}Z)")
_TIME: Final = "%Y%m%dT%H%M%SZ"
_UNFINISHED: Final = ".unfinished"

Manifest = dict[str, Any]


class BackupInvalid(KonstructError):
    """A folder is no backup of this deployment, is incomplete, or was changed."""


class BackupFailed(KonstructError):
    """A backup could not be made. Nothing of it is left."""


def dump_name(tenant_id: UUID) -> str:
    """Return the name of the file with a tenant's schema."""
    return f"{schema_name_of(tenant_id)}.dump"


def jobs_name(tenant_id: UUID) -> str:
    """Return the name of the file with a tenant's jobs."""
    return f"{schema_name_of(tenant_id)}.jobs.jsonl"


@contextmanager
def new_backup(directory: Path) -> Iterator[tuple[Path, Manifest]]:
    """Make a backup in the block, which fills its folder and its manifest.

    Until the end the folder has the name of no backup. Folders of killed processes with such a name
    are removed.

    Raises:
        BackupFailed: the disk is full, or the directory cannot be written.
    """
    began_at = datetime.now(UTC)
    final = directory / f"konstruct-{began_at:{_TIME}}"
    draft = final.with_name(f"{final.name}.{os.getpid()}{_UNFINISHED}")
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_unfinished(directory)
        draft.mkdir(mode=0o700)
    except OSError as error:
        raise BackupFailed(f"{directory} cannot be used: {error.strerror}") from error
    lock = os.open(draft, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        manifest: Manifest = {"format": FORMAT, "began_at": began_at.isoformat(), "tenants": []}
        yield draft, manifest
        _finish(draft, manifest)
        draft.rename(final)
        _sync(directory)
    except OSError as error:
        raise BackupFailed(f"the backup cannot be written: {error.strerror or error}") from error
    finally:
        os.close(lock)
        shutil.rmtree(draft, ignore_errors=True)  # absent if the backup was completed


def backup_name(manifest: Manifest) -> str:
    """Return the name of a backup's folder."""
    return f"konstruct-{datetime.fromisoformat(manifest['began_at']):{_TIME}}"


def format_moment(moment: str) -> str:
    """Return a time of a manifest in a readable format."""
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a backup, and check that this deployment wrote it.

    Raises:
        BackupInvalid: another deployment wrote it, or it was changed.
    """
    try:
        document = read_json((path / MANIFEST).read_bytes())
        sent_signature = document.pop("signature")
    except OSError as error:
        raise BackupInvalid(f"{path} is not a backup: it has no {MANIFEST} to read") from error
    except (NotStrictJSON, AttributeError, KeyError, TypeError) as error:
        raise BackupInvalid(f"{path / MANIFEST} is not the manifest of a backup") from error
    if not is_signed(document, _PURPOSE, str(sent_signature)):
        raise BackupInvalid(
            f"the signature of {path / MANIFEST} does not fit: it was changed, or made under"
            " another SECRET_KEY, which is then to be added to SECRET_KEY_FALLBACKS"
        )
    if document["format"] != FORMAT:
        raise BackupInvalid(f"this version cannot read the format {document['format']} of {path}")
    manifest: Manifest = document
    return manifest


def check_file(path: Path, manifest: Manifest, name: str) -> None:
    """Check that a file of a backup is unchanged.

    Raises:
        BackupInvalid: it is missing, truncated or changed.
    """
    expected = manifest["files"].get(name)
    try:
        with (path / name).open("rb") as file:
            actual = _size_and_digest(file)
    except OSError as error:
        raise BackupInvalid(f"{path / name} cannot be read: {error.strerror}") from error
    if actual != expected:
        raise BackupInvalid(f"{path / name} was changed, or is not whole: its digest does not fit")


def backups_in(directory: Path) -> list[Path]:
    """Return the backups of a directory, the oldest first."""
    return sorted(path for path in directory.glob("konstruct-*Z") if _NAME.fullmatch(path.name))


def remove_old(directory: Path, *, days: int) -> list[Path]:
    """Remove and return the backups that are older than this. The newest one stays."""
    limit = datetime.now(UTC) - timedelta(days=days)
    removed = []
    for path in backups_in(directory)[:-1]:
        made_at = datetime.strptime(path.name.partition("-")[2], _TIME).replace(tzinfo=UTC)
        if made_at < limit and not path.is_symlink():  # a link's target is not ours to remove
            # First, so that an interrupted removal leaves no folder that looks like a backup.
            (path / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(path)
            removed.append(path)
    return removed


def _finish(draft: Path, manifest: Manifest) -> None:
    """Write the manifest, and wait until all files are on the disk."""
    files = {}
    for path in sorted(draft.iterdir()):
        path.chmod(0o600)
        with path.open("rb") as file:
            os.fsync(file.fileno())
            files[path.name] = _size_and_digest(file)
    manifest |= {"files": files, "ended_at": datetime.now(UTC).isoformat()}
    signed = {**manifest, "signature": signature(manifest, _PURPOSE)}
    with (draft / MANIFEST).open("x") as file:
        os.fchmod(file.fileno(), 0o600)
        json.dump(signed, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    _sync(draft)


def _size_and_digest(file: BufferedReader) -> dict[str, Any]:
    size = os.fstat(file.fileno()).st_size
    return {"bytes": size, "sha256": file_digest(file, "sha256").hexdigest()}


def _sync(directory: Path) -> None:
    """Wait until the names of a directory are on the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_unfinished(directory: Path) -> None:
    """Remove unfinished folders that no process has locked."""
    for path in directory.glob(f"konstruct-*{_UNFINISHED}"):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)
