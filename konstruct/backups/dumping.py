"""Backups of tenants: a folder that is complete or absent, and is checked before a restore."""

import errno
import fcntl
import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import file_digest
from io import BufferedReader
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError

from konstruct.strict_json import NotStrictJSON, read_json
from tenants import context, journal, naming, postgres_tools, secret_keys
from tenants.exceptions import KonstructError
from tenants.models import Domain, Job, Tenant, WorkspaceClaim

logger = logging.getLogger(__name__)

_MIGRATIONS: Final = "SELECT app || '.' || name FROM {}"
# Messages of programs when the disk or the quota of the account is full.
_DISK_FULL_MESSAGES: Final = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))

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


@dataclass
class Backup:
    """A backup."""

    path: Path
    bytes: int
    tenants: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Tenants that could not be backed up, with the reason."""


def back_up(directory: Path, tenants: Sequence[Tenant]) -> Backup:
    """Make a backup in a new folder. A tenant that fails does not stop the others.

    Each tenant is consistent, with its jobs, at one time. The times of two tenants differ.

    Args:
        directory: where the folder is made.
        tenants: tenants that have a schema.

    Raises:
        BackupFailed: the disk is full, or no tenant could be backed up. Nothing is left.
        JournalUnavailable: the journal of erasures cannot be read.
    """
    failed: dict[str, str] = {}
    taken_at: dict[Any, datetime] = {}
    with new_backup(directory) as (folder, manifest):
        manifest |= {
            # First: an erasure that ends later is repeated after a restore, in the backup or not.
            "journal": journal.position(),
            "keeps_journal": journal.is_enabled(),
        }
        for tenant in tenants:
            try:
                entry, taken_at[tenant.pk] = _dump_tenant(tenant, folder)
            except (DatabaseError, KonstructError, Tenant.DoesNotExist) as error:
                if (reason := _clean_up_failure(tenant, folder, error)) is not None:
                    failed[tenant.slug] = reason
                continue
            manifest["tenants"].append(entry)
        if failed and not manifest["tenants"]:
            raise BackupFailed(f"no tenant could be backed up: {next(iter(failed.values()))}")
    with context.public_scope():
        for pk, time_of_dump in taken_at.items():
            Tenant.objects.filter(pk=pk).update(backed_up_at=time_of_dump)
    size = sum(file["bytes"] for file in manifest["files"].values())
    slugs = [entry["slug"] for entry in manifest["tenants"]]
    return Backup(directory / backup_name(manifest), size, slugs, failed)


def _clean_up_failure(tenant: Tenant, folder: Path, error: Exception) -> str | None:
    """Remove the files of a tenant whose dump failed, and return the reason in one line.

    Returns:
        None if the tenant was deleted during the backup.

    Raises:
        BackupFailed: the disk is full.
    """
    if any(text in str(error) for text in _DISK_FULL_MESSAGES):
        raise BackupFailed(f"there is no space left in {folder.parent}: {error}") from error
    for name in (dump_name(tenant.pk), jobs_name(tenant.pk)):
        (folder / name).unlink(missing_ok=True)
    is_deleted = not Tenant.objects.filter(pk=tenant.pk).exists()
    return None if is_deleted else " ".join(str(error).split())


def verify_backup(path: Path) -> Manifest:
    """Check the digests of all files of a backup, and that each dump can be read.

    Returns:
        The manifest.

    Raises:
        BackupInvalid: a file is missing, or was changed.
        ToolFailed: pg_restore cannot read a dump.
    """
    manifest = read_manifest(path)
    for name in manifest["files"]:
        check_file(path, manifest, name)
    for entry in manifest["tenants"]:
        check_tenant(path, manifest, entry)
    return manifest


def check_tenant(path: Path, manifest: Manifest, entry: dict[str, Any]) -> None:
    """Check the files of one tenant, and that its dump has only rows of its own schema.

    Raises:
        BackupInvalid: a file is missing, was changed, or belongs to another tenant.
        ToolFailed: pg_restore cannot read the dump.
    """
    pk = UUID(entry["id"])
    schema = naming.schema_name_of(pk)
    for name in (dump_name(pk), jobs_name(pk)):
        check_file(path, manifest, name)
    tables = postgres_tools.tables_in(path / dump_name(pk))
    if {name for name, _ in tables} != {schema} or (schema, "memory_message") not in tables:
        raise BackupInvalid(
            f"{path / dump_name(pk)} is not a dump of the tenant {entry['slug']!r} alone"
        )


def _dump_tenant(tenant: Tenant, folder: Path) -> tuple[dict[str, Any], datetime]:
    """Dump a tenant's schema and jobs; return its entry of the manifest, and the time of the dump.

    Erasures go on during the dump. The lock, which is taken before the snapshot, refuses what
    replaces the schema or records a migration: pg_dump finds tables by name, and in a new schema
    with this name it would find no row of its snapshot.
    """
    with context.public_scope():
        tenant.refresh_from_db()
    if tenant.moving_to or tenant.state == Tenant.State.RESTORING:
        raise BackupFailed("it is being moved or restored: back it up afterwards")
    table = f"{tenant.schema_name}.django_migrations"
    with postgres_tools.session_on(tenant.server) as session:
        postgres_tools.run(session, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        postgres_tools.run(session, f"LOCK TABLE {table} IN SHARE MODE")
        postgres_tools.set_tenant(session, tenant.pk)
        ((snapshot, taken_at),) = postgres_tools.run(session, "SELECT pg_export_snapshot(), now()")
        migrations = sorted(
            name for (name,) in postgres_tools.run(session, _MIGRATIONS.format(table))
        )
        if not migrations:
            raise BackupFailed(f"the rows of {tenant.schema_name} are hidden from the owner's role")
        with (folder / jobs_name(tenant.pk)).open("w") as jobs:
            condition = f"tenant_id = {postgres_tools.literal(str(tenant.pk))}"
            for row in postgres_tools.read_rows(session, f"public.{Job._meta.db_table}", condition):
                jobs.write(f"{row}\n")
        file = f"--file={folder / dump_name(tenant.pk)}"
        options = ("--format=custom", f"--snapshot={snapshot}", file)
        postgres_tools.dump_schema(session, tenant.pk, tenant.schema_name, *options)
        postgres_tools.run(session, "COMMIT")
        version = session.info.server_version // 10_000
    with context.public_scope():
        domains = Domain.objects.filter(tenant=tenant).order_by("-is_primary", "domain")
        claims = WorkspaceClaim.objects.filter(tenant=tenant).order_by("pk")
        return {
            "id": str(tenant.pk),
            "slug": tenant.slug,
            "name": tenant.name,
            "state": tenant.state,
            "quotas": tenant.quotas,
            "server": tenant.server,
            "postgres": version,
            "as_of": taken_at.isoformat(),
            "migrations": migrations,
            "domains": [*domains.values_list("domain", flat=True)],
            "claims": [[*claim] for claim in claims.values_list("channel", "workspace")],
        }, taken_at


def dump_name(tenant_id: UUID) -> str:
    """Return the name of the file with a tenant's schema."""
    return f"{naming.schema_name_of(tenant_id)}.dump"


def jobs_name(tenant_id: UUID) -> str:
    """Return the name of the file with a tenant's jobs."""
    return f"{naming.schema_name_of(tenant_id)}.jobs.jsonl"


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
    if not secret_keys.is_signed(document, _PURPOSE, str(sent_signature)):
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
    signed = {**manifest, "signature": secret_keys.signature(manifest, _PURPOSE)}
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
