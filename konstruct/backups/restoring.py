"""Restores tenants. A tenant is served after its erasures are repeated and it is verified.

1. The backup is checked. Nothing is changed before that.
2. The tenant is closed: its requests get 503, and none of its jobs is begun.
3. Its schema is renamed, and `pg_restore` creates that of the backup, in one transaction.
   If this fails, the schema gets its name back, and the tenant is as before.
4. The schema is migrated, and erasures since the backup are repeated (`settle`).
5. The renamed schema is dropped, and the tenant is served.

If it is killed, the tenant is as before, or closed. The same command then begins anew. Until it
succeeds, the tenant stays closed: its schema may lack erasures.
"""

import json
import logging
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import DatabaseError, IntegrityError

from konstruct.backups.dumping import check_tenant
from konstruct.backups.files import Manifest, backup_name, dump_name, jobs_name
from konstruct.backups.replaying import journal_open_requests
from konstruct.backups.settling import Restored, close, reopen, settle
from tenants import journal, traces, transaction
from tenants.audit.operator_log import record_command, state_of_tenant
from tenants.audit.tombstones import write_tombstones
from tenants.context import execute, public_scope, server_scope, tenant_scope
from tenants.exceptions import InvalidTenant, SchemaOutdated, WorkspaceTaken
from tenants.locking import refuse_pooled_owner, schema_lock
from tenants.models import Domain, Job, Tenant
from tenants.moving import SETTLE_SECONDS
from tenants.naming import replaced_schema_of
from tenants.postgres_tools import (
    end_killed_restores,
    insert_rows,
    restore_schema,
    run,
    session_on,
    set_tenant,
)
from tenants.roles import APP_ROLE
from tenants.schemas.migration_state import known_migrations, schema_exists
from tenants.schemas.provisioning import default_domain
from tenants.servers import cache_server, require_server
from tenants.serving import claim_workspace

logger = logging.getLogger(__name__)


def restore(
    path: Path,
    manifest: Manifest,
    entry: dict[str, Any],
    entries: Iterable[journal.Entry],
    *,
    slug: str = "",
    server: str = "",
    repair: bool = False,
) -> Restored:
    """Restore one tenant of a backup, replacing the current one, or as a new one.

    Args:
        path: the folder of the backup.
        manifest: its manifest.
        entry: the tenant's entry in the manifest.
        entries: lines of the journal since the backup.
        slug: another slug for a tenant that this deployment does not have.
        server: the server for such a tenant.
        repair: repair the findings of `verify_memory`.

    Raises:
        BackupInvalid, SchemaOutdated, InvalidTenant: nothing was changed.
        ToolFailed: the schema could not be created. Nothing was changed.
        NotConsistent: the tenant is restored, but not consistent, and stays closed.
    """
    _refuse_unknown_migrations(entry)
    check_tenant(path, manifest, entry)
    refuse_pooled_owner()
    tenant = _find_or_register(entry, slug=slug, server=server)
    with (
        traces.span("restore tenant", tenant_id=tenant.pk),
        server_scope(tenant.server),
        schema_lock(tenant.schema_name),
    ):
        before = state_of_tenant(tenant)
        was_served = close(tenant)
        with session_on(tenant.server) as session:
            end_killed_restores(session, tenant.schema_name)
        time.sleep(SETTLE_SECONDS)  # for running requests to end, as before a move
        try:
            entries = [*entries, *_journal_waiting_erasures(tenant)]
            _set_aside(tenant)
            _load(tenant, path)
        except BaseException:
            _put_back(tenant)
            if was_served:
                reopen(tenant)
            raise
        return settle(tenant, entries, repair=repair, before=before, backup=backup_name(manifest))


def _refuse_unknown_migrations(entry: dict[str, Any]) -> None:
    known = known_migrations()
    known_apps = {name.partition(".")[0] for name in known}
    unknown = set(entry["migrations"]) - known
    if unknown := {name for name in unknown if name.partition(".")[0] in known_apps}:
        raise SchemaOutdated(
            f"the backup of {entry['slug']!r} has migrations that this version does not know"
            f" ({sorted(unknown)[0]}, …): restore it with the version that made it, then upgrade"
        )


def _find_or_register(entry: dict[str, Any], *, slug: str, server: str) -> Tenant:
    """Return the tenant of a backup. If this deployment does not have it, register it as closed."""
    with public_scope():
        tenant = Tenant.objects.filter(pk=entry["id"]).first()
        if tenant is not None:
            cache_server(tenant.pk, tenant.server)
            if slug not in ("", tenant.slug) or server not in ("", tenant.server):
                raise InvalidTenant(
                    f"this tenant exists here as {tenant.slug!r}, on {tenant.server}. --as and"
                    " --server restore a copy only into another deployment"
                )
            return tenant
        if server:
            require_server(server)
        state = entry["state"]
        tenant = Tenant(
            pk=UUID(entry["id"]),
            slug=slug or entry["slug"],
            name=entry["name"],
            quotas=entry["quotas"],
            state=Tenant.State.RESTORING,
            state_before=state if state == Tenant.State.SUSPENDED else Tenant.State.ACTIVE,
            **({"server": server} if server else {}),
        )
        domains = [] if slug else entry["domains"]
        try:
            tenant.clean_fields(exclude=["schema_name", "server"])
            with transaction.atomic():
                tenant.save(force_insert=True)
                tenant.refresh_from_db()
                cache_server(tenant.pk, tenant.server)
                for position, name in enumerate(domains or [default_domain(tenant.slug)]):
                    Domain.objects.create(domain=name, tenant=tenant, is_primary=position == 0)
                _claim_workspaces(tenant, entry["claims"])
                record_command("restore", "create", tenant, after=state_of_tenant(tenant))
        except ValidationError as error:
            raise InvalidTenant("; ".join(error.messages)) from error
        except IntegrityError as error:
            raise InvalidTenant(
                f"another tenant has the name {tenant.slug!r} or one of its domains: pass --as SLUG"
                " to restore it under another name"
            ) from error
        journal.append(tenant.pk, journal.RESTORED)
        return tenant


def _journal_waiting_erasures(tenant: Tenant) -> list[journal.Entry]:
    """Write erasures that the owner's worker has not written yet into the journal; return them.

    Their requests are in the schema that is renamed, and their jobs are replaced.
    """
    if not journal.is_enabled():
        return []
    position = journal.position()
    with tenant_scope(tenant.pk):
        write_tombstones()
        try:
            if schema_exists(tenant.schema_name):
                journal_open_requests()
        except DatabaseError as error:  # a broken schema is a reason to restore it
            logger.warning(
                "Open erasures of tenant %s are not in the journal: %s", tenant.slug, error
            )
    return journal.read(position)


def _set_aside(tenant: Tenant) -> None:
    """Rename the current schema, and revoke the application's access to it.

    A schema that a killed restore has created is dropped: the renamed one already exists.
    """
    renamed = replaced_schema_of(tenant.pk)
    if schema_exists(renamed):
        execute(f"DROP SCHEMA IF EXISTS {tenant.schema_name} CASCADE")
    elif schema_exists(tenant.schema_name):
        with transaction.atomic():
            execute(f"ALTER SCHEMA {tenant.schema_name} RENAME TO {renamed}")
            execute(f"REVOKE USAGE ON SCHEMA {renamed} FROM {APP_ROLE}")


def _put_back(tenant: Tenant) -> None:
    renamed = replaced_schema_of(tenant.pk)
    with server_scope(tenant.server), transaction.atomic():
        if schema_exists(renamed):
            execute(f"DROP SCHEMA IF EXISTS {tenant.schema_name} CASCADE")
            execute(f"ALTER SCHEMA {renamed} RENAME TO {tenant.schema_name}")
            execute(f"GRANT USAGE ON SCHEMA {tenant.schema_name} TO {APP_ROLE}")


def _load(tenant: Tenant, path: Path) -> None:
    """Create the schema of the backup, and replace the tenant's jobs and claims."""
    with session_on(tenant.server) as session:
        restore_schema(session, tenant.schema_name, path / dump_name(tenant.pk))
        with (path / jobs_name(tenant.pk)).open() as file:
            jobs = [json.loads(line) for line in file]
        with session.transaction():
            set_tenant(session, tenant.pk)
            table = f"public.{Job._meta.db_table}"
            run(session, f"DELETE FROM {table} WHERE tenant_id = %s", tenant.pk)  # noqa: S608
            insert_rows(session, table, jobs)


def _claim_workspaces(tenant: Tenant, claims: Iterable[Sequence[str]]) -> None:
    """Claim the workspaces of a new tenant that no other tenant has claimed."""
    with tenant_scope(tenant.pk):
        for channel, workspace in claims:
            try:
                claim_workspace(channel, workspace)
            except WorkspaceTaken as error:
                logger.warning("%s", error)
