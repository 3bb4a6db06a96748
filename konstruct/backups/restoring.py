"""Restores tenants. A tenant is served after its erasures are repeated and it is verified.

1. The backup is checked. Nothing is changed before that.
2. The tenant is closed: its requests get 503, and none of its jobs is begun.
3. `pg_restore` replaces its schema by that of the backup, in one transaction.
   If this fails, the tenant is as before.
4. The schema is migrated, and erasures since the backup are repeated (`settle`).
5. The tenant is verified, and served.

If it is killed, the tenant is as before, or closed. The same command then begins anew. Until it
succeeds, the tenant stays closed: its schema may lack erasures.
"""

import json
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.contrib.sessions.models import Session as LoginSession
from django.db import DatabaseError
from django.db.models import F
from django.db.models.functions import Now

from konstruct.backups.dumping import Manifest, backup_name, check_tenant, dump_name, jobs_name
from konstruct.backups.replaying import journal_open_requests, replay
from konstruct.channels.delivery import DELIVERIES
from konstruct.channels.inbox import ARRIVALS
from konstruct.consistency import Report, verify
from konstruct.orchestrator import messages
from konstruct.orchestrator.models import HeldFor
from konstruct.orchestrator.replies import REPLIES
from tenants import journal, postgres_tools, transaction
from tenants.audit.operator_log import record_command, state_of_tenant
from tenants.audit.tombstones import write_tombstones
from tenants.context import public_scope, required_tenant_id, server_scope, tenant_scope
from tenants.exceptions import InvalidTenant, KonstructError, SchemaOutdated, WorkspaceTaken
from tenants.jobs import NOT_BEGUN
from tenants.models import Job, OperatorEvent, Tenant
from tenants.moving import SETTLE_SECONDS
from tenants.postgres_tools import refuse_pooled_owner, schema_lock
from tenants.schemas.migrating import known_migrations, migrate_schema, schema_exists
from tenants.schemas.provisioning import clear_tenant_cache, default_domain, register, wake_jobs
from tenants.servers import cache_server, require_server
from tenants.serving import claim_workspace

logger = logging.getLogger(__name__)

# Jobs with effects outside of the deployment. They may have been done after the backup.
KINDS_WITH_OUTSIDE_EFFECTS: Final = (REPLIES, DELIVERIES, ARRIVALS)
RESTORED: Final = "restored"
GIVEN_UP_REASON: Final = (
    "It waited when the restored backup was made, and may have been done since then. "
    "Check this before you retry it."
)
# Clocks of two servers differ by less.
CLOCK_TOLERANCE: Final = timedelta(minutes=5)


class NotConsistent(KonstructError):
    """A restored tenant is not consistent, and stays closed."""


@dataclass(frozen=True)
class Restored:
    """The result of restoring one tenant."""

    tenant: Tenant
    erasures: int
    """Erasures that were repeated."""
    jobs_given_up: int
    """Jobs that were given up, for a person to check."""
    report: Report


def restore(
    path: Path,
    manifest: Manifest,
    entry: dict[str, Any],
    entries: Iterable[journal.Entry],
    *,
    server: str = "",
    repair: bool = False,
) -> Restored:
    """Restore one tenant of a backup, replacing the current one, or as a new one.

    Args:
        path: the folder of the backup.
        manifest: its manifest.
        entry: the tenant's entry in the manifest.
        entries: lines of the journal since the backup.
        server: the server for a tenant that this deployment does not have.
        repair: repair the findings of `verify_memory`.

    Raises:
        BackupInvalid, SchemaOutdated, InvalidTenant: nothing was changed.
        ToolFailed: the schema could not be created. Nothing was changed.
        NotConsistent: the tenant is restored, but not consistent, and stays closed.
    """
    _refuse_unknown_migrations(entry)
    check_tenant(path, manifest, entry)
    refuse_pooled_owner()
    tenant = _find_or_register(entry, server)
    with server_scope(tenant.server), schema_lock(tenant.schema_name):
        before = state_of_tenant(tenant)
        was_served = close(tenant)
        with postgres_tools.session_on(tenant.server) as session:
            postgres_tools.end_killed_restores(session, tenant.schema_name)
        time.sleep(SETTLE_SECONDS)  # for running requests to end, as before a move
        try:
            entries = [*entries, *_journal_waiting_erasures(tenant)]
            _load(tenant, path)
        except BaseException:
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


def _find_or_register(entry: dict[str, Any], server: str) -> Tenant:
    """Return the tenant of a backup. If this deployment does not have it, register it as closed."""
    with public_scope():
        tenant = Tenant.objects.filter(pk=entry["id"]).first()
        if tenant is not None:
            cache_server(tenant.pk, tenant.server)
            if server not in ("", tenant.server):
                raise InvalidTenant(
                    f"this tenant exists here on {tenant.server}: --server is for a new one"
                )
            return tenant
        if server:
            require_server(server)
        state = entry["state"]
        tenant = Tenant(
            pk=UUID(entry["id"]),
            slug=entry["slug"],
            name=entry["name"],
            quotas=entry["quotas"],
            state=Tenant.State.RESTORING,
            state_before=state if state == Tenant.State.SUSPENDED else Tenant.State.ACTIVE,
            **({"server": server} if server else {}),
        )
        domains = entry["domains"] or [default_domain(tenant.slug)]

        def complete(registered: Tenant) -> None:
            cache_server(registered.pk, registered.server)
            _claim_workspaces(registered, entry["claims"])
            record_command("restore", "create", registered, after=state_of_tenant(registered))

        register(tenant, domains, complete)
        journal.append(tenant.pk, journal.RESTORED)
        return tenant


def _journal_waiting_erasures(tenant: Tenant) -> list[journal.Entry]:
    """Write erasures that the owner's worker has not written yet into the journal; return them.

    Their requests are in the schema that is replaced, and so are their jobs.
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


def _load(tenant: Tenant, path: Path) -> None:
    """Replace the tenant's schema and jobs by those of the backup."""
    with postgres_tools.session_on(tenant.server) as session:
        postgres_tools.restore_schema(session, tenant.schema_name, path / dump_name(tenant.pk))
        with (path / jobs_name(tenant.pk)).open() as file:
            jobs = [json.loads(line) for line in file]
        with session.transaction():
            postgres_tools.set_tenant(session, tenant.pk)
            table = f"public.{Job._meta.db_table}"
            postgres_tools.run(session, f"DELETE FROM {table} WHERE tenant_id = %s", tenant.pk)  # noqa: S608
            postgres_tools.insert_rows(session, table, jobs)


def _claim_workspaces(tenant: Tenant, claims: Iterable[Sequence[str]]) -> None:
    """Claim the workspaces of a new tenant that no other tenant has claimed."""
    with tenant_scope(tenant.pk):
        for channel, workspace in claims:
            try:
                claim_workspace(channel, workspace)
            except WorkspaceTaken as error:
                logger.warning("%s", error)


def read_entries_since(moment: datetime) -> list[journal.Entry]:
    """Return the lines of the journal since a time, to which Postgres was recovered."""
    since = moment - CLOCK_TOLERANCE
    return [entry for entry in journal.read() if datetime.fromisoformat(entry["at"]) >= since]


def deleted_tenants() -> set[str]:
    """Return the ids of tenants that the journal has as deleted, and not as kept or
    restored afterwards."""
    deleted: set[str] = set()
    for entry in journal.read() if journal.is_enabled() else ():
        if entry["kind"] == journal.TENANT:
            deleted.add(entry["tenant"])
        elif entry["kind"] in (journal.RESTORED, journal.DELETION_FAILED):
            deleted.discard(entry["tenant"])
    return deleted


def undelete(tenant: Tenant) -> None:
    """Cancel the deletion of a tenant that is to be restored, also in the journal."""
    journal.append(tenant.pk, journal.RESTORED)
    with public_scope():
        deleted = Tenant.objects.filter(pk=tenant.pk)
        deleted.update(deletion_asked_at=None, delete_at=None)
    tenant.refresh_from_db()


def find_settled(**log_detail: str) -> dict[str, datetime]:
    """Return the ids of tenants that were settled with these values in the operators' log.

    Args:
        log_detail: either `backup`, the name of a backup, or `recovered_to`, a time.

    Returns:
        Ids of tenants that are served, with the time.
    """
    served = Tenant.objects.exclude(state=Tenant.State.RESTORING).values_list("pk", flat=True)
    restored = OperatorEvent.objects.filter(
        **{f"detail__{name}": value for name, value in log_detail.items()},
        action=OperatorEvent.Action.RESTORE,
        subject_id__in=[str(pk) for pk in served],
    )
    return dict(restored.values_list("subject_id", "created_at"))


def close(tenant: Tenant) -> bool:
    """Stop serving a tenant. It stores the state to which it will return.

    Returns:
        False if it was closed already, so that its schema may not be one that was served.
    """
    with public_scope():
        not_closed = Tenant.objects.filter(pk=tenant.pk).exclude(state=Tenant.State.RESTORING)
        if tenant.moving_to:
            raise InvalidTenant(f"tenant {tenant.slug!r} is being moved: end the move first")
        if tenant.deletion_asked_at is None:
            not_closed.update(state_before=tenant.state)
        was_served = bool(not_closed.update(state=Tenant.State.RESTORING))
        tenant.refresh_from_db()
        return was_served


def settle(
    tenant: Tenant, entries: Iterable[journal.Entry], *, repair: bool = False, **log_detail: Any
) -> Restored:
    """Repeat the erasures since a backup in a closed tenant, verify it, and serve it.

    Args:
        tenant: the tenant.
        entries: lines of the journal since the backup; those of other tenants are ignored.
        repair: repair the findings of `verify_memory`.
        log_detail: values for the operators' log. `find_settled` finds the tenant by `backup` or
            `recovered_to`.

    Raises:
        NotConsistent: it is not consistent, and stays closed.
    """
    entries_of_tenant = [entry for entry in entries if entry["tenant"] == str(tenant.pk)]
    migrated = migrate_schema(tenant.schema_name)
    if migrated.error:
        raise NotConsistent(
            f"tenant {tenant.slug!r} cannot be migrated, and stays closed: {migrated.error}"
        )
    clear_tenant_cache(tenant)
    with server_scope(tenant.server), tenant_scope(tenant.pk):
        jobs_given_up = _give_up_jobs()
        LoginSession.objects.all().delete()
        erasures = replay(entries_of_tenant)
        messages.write_all_states(tenant.pk)
    report = verify(tenant.pk, tenant.slug, repair=repair)
    if report.findings:
        kinds = ", ".join(sorted({finding.kind for finding in report.findings}))
        raise NotConsistent(
            f"tenant {tenant.slug!r} is restored and stays closed, because verify_memory finds"
            f" {len(report.findings)} × {kinds}. List them with verify_memory --tenant"
            f" {tenant.slug}, then run restore again with --repair"
        )
    with public_scope(), transaction.atomic():
        reopen(tenant)
        record_command("restore", "restore", tenant, **log_detail)
    wake_jobs(tenant.pk)
    return Restored(tenant, erasures, jobs_given_up, report)


def _give_up_jobs() -> int:
    """Give up jobs of the current tenant with outside effects; a person may retry them.

    Jobs that wait for a person are not changed. Return the number of jobs.
    """
    jobs = Job.objects.filter(tenant_id=required_tenant_id())
    jobs.filter(begun_at__isnull=False).update(**NOT_BEGUN)
    unfailed = jobs.filter(
        kind__in=[kind.name for kind in KINDS_WITH_OUTSIDE_EFFECTS], failed_at__isnull=True
    )
    return unfailed.exclude(held_for=HeldFor.PERSON).update(
        failed_at=Now(), held_for="", error_code=RESTORED, last_error=GIVEN_UP_REASON
    )


def reopen(tenant: Tenant) -> None:
    """Return a closed tenant to its state before."""
    with public_scope():
        closed = Tenant.objects.filter(pk=tenant.pk, state=Tenant.State.RESTORING)
        closed.filter(deletion_asked_at__isnull=False).update(state=Tenant.State.SUSPENDED)
        closed.filter(state_before="").update(state=Tenant.State.ACTIVE)
        closed.update(state=F("state_before"), state_before="")
        tenant.refresh_from_db()
