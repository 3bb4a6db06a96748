"""Backs up tenants."""

import errno
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError

from konstruct.backups import files
from tenants import journal, postgres_tools
from tenants.context import public_scope
from tenants.exceptions import KonstructError
from tenants.models import Domain, Job, Tenant, WorkspaceClaim
from tenants.naming import schema_name_of

logger = logging.getLogger(__name__)

_MIGRATIONS: Final = "SELECT app || '.' || name FROM {}"
# Messages of programs when the disk or the quota of the account is full.
_DISK_FULL_MESSAGES: Final = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))


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
    with files.new_backup(directory) as (folder, manifest):
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
            raise files.BackupFailed(f"no tenant could be backed up: {next(iter(failed.values()))}")
    with public_scope():
        for pk, time_of_dump in taken_at.items():
            Tenant.objects.filter(pk=pk).update(backed_up_at=time_of_dump)
    size = sum(file["bytes"] for file in manifest["files"].values())
    slugs = [entry["slug"] for entry in manifest["tenants"]]
    return Backup(directory / files.backup_name(manifest), size, slugs, failed)


def _clean_up_failure(tenant: Tenant, folder: Path, error: Exception) -> str | None:
    """Remove the files of a tenant whose dump failed, and return the reason in one line.

    Returns:
        None if the tenant was deleted during the backup.

    Raises:
        BackupFailed: the disk is full.
    """
    if any(text in str(error) for text in _DISK_FULL_MESSAGES):
        raise files.BackupFailed(f"there is no space left in {folder.parent}: {error}") from error
    for name in (files.dump_name(tenant.pk), files.jobs_name(tenant.pk)):
        (folder / name).unlink(missing_ok=True)
    is_deleted = not Tenant.objects.filter(pk=tenant.pk).exists()
    return None if is_deleted else " ".join(str(error).split())


def verify_backup(path: Path) -> files.Manifest:
    """Check the digests of all files of a backup, and that each dump can be read.

    Returns:
        The manifest.

    Raises:
        BackupInvalid: a file is missing, or was changed.
        ToolFailed: pg_restore cannot read a dump.
    """
    manifest = files.read_manifest(path)
    for name in manifest["files"]:
        files.check_file(path, manifest, name)
    for entry in manifest["tenants"]:
        check_tenant(path, manifest, entry)
    return manifest


def check_tenant(path: Path, manifest: files.Manifest, entry: dict[str, Any]) -> None:
    """Check the files of one tenant, and that its dump has only rows of its own schema.

    Raises:
        BackupInvalid: a file is missing, was changed, or belongs to another tenant.
        ToolFailed: pg_restore cannot read the dump.
    """
    pk = UUID(entry["id"])
    schema = schema_name_of(pk)
    for name in (files.dump_name(pk), files.jobs_name(pk)):
        files.check_file(path, manifest, name)
    tables = postgres_tools.tables_in(path / files.dump_name(pk))
    if {name for name, _ in tables} != {schema} or (schema, "memory_message") not in tables:
        raise files.BackupInvalid(
            f"{path / files.dump_name(pk)} is not a dump of the tenant {entry['slug']!r} alone"
        )


def _dump_tenant(tenant: Tenant, folder: Path) -> tuple[dict[str, Any], datetime]:
    """Dump a tenant's schema and jobs; return its entry of the manifest, and the time of the dump.

    Erasures go on during the dump. The lock, which is taken before the snapshot, refuses what
    replaces the schema or records a migration: pg_dump finds tables by name, and in a new schema
    with this name it would find no row of its snapshot.
    """
    with public_scope():
        tenant.refresh_from_db()
    if tenant.moving_to or tenant.state == Tenant.State.RESTORING:
        raise files.BackupFailed("it is being moved or restored: back it up afterwards")
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
            raise files.BackupFailed(
                f"the rows of {tenant.schema_name} are hidden from the owner's role"
            )
        with (folder / files.jobs_name(tenant.pk)).open("w") as jobs:
            condition = f"tenant_id = {postgres_tools.literal(str(tenant.pk))}"
            for row in postgres_tools.read_rows(session, f"public.{Job._meta.db_table}", condition):
                jobs.write(f"{row}\n")
        file = f"--file={folder / files.dump_name(tenant.pk)}"
        options = ("--format=custom", f"--snapshot={snapshot}", file)
        postgres_tools.dump_schema(session, tenant.pk, tenant.schema_name, *options)
        postgres_tools.run(session, "COMMIT")
        version = session.info.server_version // 10_000
    with public_scope():
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
