"""Settles restored tenants: repeats erasures since the backup, verifies and serves them."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.sessions.models import Session as LoginSession
from django.db.models import F
from django.db.models.functions import Now

from konstruct.backups.replaying import replay
from konstruct.channels.delivery.queue import DELIVERIES
from konstruct.channels.inbox import ARRIVALS
from konstruct.channels.notifications.checks import NOTIFICATIONS
from konstruct.consistency import Report, verify
from konstruct.orchestrator import thread_cache
from konstruct.orchestrator.models import HeldFor
from konstruct.orchestrator.replies import REPLIES
from tenants import journal, transaction
from tenants.audit.operator_log import record_command
from tenants.context import execute, public_scope, required_tenant_id, server_scope, tenant_scope
from tenants.exceptions import InvalidTenant, KonstructError
from tenants.jobs import NOT_BEGUN
from tenants.models import Job, OperatorEvent, Tenant
from tenants.naming import replaced_schema_of
from tenants.postgresql.exceptions import ServerDown
from tenants.schemas.migrating import migrate_schema
from tenants.schemas.provisioning import clear_tenant_cache

# Jobs with effects outside of the deployment. They may have been done after the backup.
KINDS_WITH_OUTSIDE_EFFECTS: Final = (REPLIES, DELIVERIES, ARRIVALS, NOTIFICATIONS)
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
    """Return the ids of tenants that were last settled with these values in the operators' log.

    Args:
        log_detail: either `backup`, the name of a backup, or `recovered_to`, a time.

    Returns:
        Ids of tenants that are served, with the time.
    """
    last_events = {
        event.subject_id: event
        for event in OperatorEvent.objects.filter(
            action=OperatorEvent.Action.RESTORE, detail__command="restore"
        ).order_by("pk")
    }
    served = Tenant.objects.exclude(state=Tenant.State.RESTORING).values_list("pk", flat=True)
    return {
        pk: last_events[pk].created_at
        for pk in map(str, served)
        if pk in last_events and log_detail.items() <= last_events[pk].detail.items()
    }


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
        thread_cache.write_all(tenant.pk)
    report = verify(tenant.pk, tenant.slug, repair=repair)
    if report.findings:
        kinds = ", ".join(sorted({finding.kind for finding in report.findings}))
        raise NotConsistent(
            f"tenant {tenant.slug!r} is restored and stays closed, because verify_memory finds"
            f" {len(report.findings)} × {kinds}. List them with verify_memory --tenant"
            f" {tenant.slug}, then run restore again with --repair"
        )
    with server_scope(tenant.server):
        execute(f"DROP SCHEMA IF EXISTS {replaced_schema_of(tenant.pk)} CASCADE")
    with public_scope(), transaction.atomic():
        reopen(tenant)
        record_command("restore", "restore", tenant, **log_detail)
    # If the server is down, the jobs are claimed within the hour.
    with suppress(ServerDown), tenant_scope(tenant.pk):
        Job.objects.wake()
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
