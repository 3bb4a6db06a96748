"""Settles restored tenants: repeats what came after the backup, verifies, and serves them."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.sessions.models import Session as LoginSession
from django.db.models import F
from django.db.models.functions import Now

from konstruct.backups.files import Manifest
from konstruct.backups.replaying import replay
from konstruct.channels.delivery.queue import DELIVERIES
from konstruct.channels.inbox import ARRIVALS
from konstruct.channels.notifications.looking import SENDING
from konstruct.consistency import Report, verify
from konstruct.orchestrator.models import HeldFor
from konstruct.orchestrator.replies.queue import REPLIES
from tenants import journal, transaction
from tenants.audit.operator_log import record_command
from tenants.context import execute, public_scope, required_tenant_id, server_scope, tenant_scope
from tenants.exceptions import InvalidTenant, KonstructError
from tenants.jobs.kind import NOT_BEGUN
from tenants.models import Job, OperatorEvent, Tenant
from tenants.naming import replaced_schema_of
from tenants.postgresql.exceptions import ServerDown
from tenants.schemas.migrating import migrate_schema
from tenants.schemas.provisioning import forget_cache

# Jobs that people outside see. They may have been done after the backup.
SEEN_BY_PEOPLE: Final = (REPLIES, DELIVERIES, ARRIVALS, SENDING)
RESTORED: Final = "restored"
PARKED: Final = (
    "It waited when the backup was made that was restored, and may have been done since. Look"
    " before you retry it."
)
# Clocks of two servers differ by less.
CLOCK_TOLERANCE: Final = timedelta(minutes=5)


class NotClean(KonstructError):
    """A restored tenant is not as it should be, and stays closed."""


@dataclass(frozen=True)
class Restored:
    """The result for one tenant."""

    tenant: Tenant
    erasures: int
    """Erasures that were repeated."""
    parked: int
    """Jobs that were given up for a person to look at."""
    report: Report


def entries_since(manifest: Manifest) -> list[journal.Entry]:
    """Return the lines of the journal that a backup does not have.

    Raises:
        JournalUnavailable, JournalBroken: the journal cannot be believed.
    """
    return journal.read(manifest["journal"])


def entries_from(moment: datetime) -> list[journal.Entry]:
    """Return the lines of the journal since a moment, to which Postgres was recovered."""
    since = moment - CLOCK_TOLERANCE
    return [each for each in journal.read() if datetime.fromisoformat(each["at"]) >= since]


def deleted_tenants() -> set[str]:
    """Return the ids of tenants that were deleted by the journal, and not restored afterwards."""
    deleted: set[str] = set()
    for entry in journal.read() if journal.is_kept() else ():
        if entry["kind"] == journal.TENANT:
            deleted.add(entry["tenant"])
        elif entry["kind"] == journal.RESTORED:
            deleted.discard(entry["tenant"])
    return deleted


def settled_by(**recorded: str) -> dict[str, datetime]:
    """Return the tenants that were settled last with this in the operators' log, and since serve.

    Args:
        recorded: one of `backup`, with the name of a backup, and `recovered_to`, with a moment.

    Returns:
        Ids of tenants, with the time.
    """
    last = {
        event.subject_id: event
        for event in OperatorEvent.objects.filter(
            action=OperatorEvent.Action.RESTORE, detail__command="restore"
        ).order_by("pk")
    }
    served = Tenant.objects.exclude(state=Tenant.State.RESTORING).values_list("pk", flat=True)
    return {
        pk: last[pk].created_at
        for pk in map(str, served)
        if pk in last and recorded.items() <= last[pk].detail.items()
    }


def close(tenant: Tenant) -> bool:
    """Stop serving a tenant. It keeps the state to which it returns.

    Returns:
        Whether it was not closed already, so that its schema is one that was served.
    """
    with public_scope():
        staying = Tenant.objects.filter(pk=tenant.pk).exclude(state=Tenant.State.RESTORING)
        if tenant.moving_to:
            raise InvalidTenant(f"tenant {tenant.slug!r} is being moved: end that first")
        if tenant.deletion_asked_at is None:
            staying.update(state_before=tenant.state)
        was_served = bool(staying.update(state=Tenant.State.RESTORING))
        tenant.refresh_from_db()
        return was_served


def settle(
    tenant: Tenant, entries: Iterable[journal.Entry], *, repair: bool = False, **recorded: Any
) -> Restored:
    """Repeat what came after a backup in a closed tenant, verify it, and serve it.

    Args:
        tenant: the tenant.
        entries: lines of the journal since the backup; those of other tenants are left out.
        repair: repair what `verify_memory` finds.
        recorded: what the operators' log has of it. By `backup` or `recovered_to`, `settled_by`
            finds the tenant.

    Raises:
        NotClean: it is not as it should be, and stays closed.
    """
    own = [each for each in entries if each["tenant"] == str(tenant.pk)]
    migrated = migrate_schema(tenant.schema_name, {"restored": True})
    if migrated.error:
        raise NotClean(
            f"tenant {tenant.slug!r} cannot be migrated, and stays closed: {migrated.error}"
        )
    forget_cache(tenant)
    with server_scope(tenant.server), tenant_scope(tenant.pk):
        parked = _park_jobs()
        LoginSession.objects.all().delete()
        erasures = replay(own)
    report = verify(tenant.pk, tenant.slug, repair=repair)
    if report.findings:
        kinds = ", ".join(sorted({finding.kind for finding in report.findings}))
        raise NotClean(
            f"tenant {tenant.slug!r} is restored and stays closed, because verify_memory finds"
            f" {len(report.findings)} × {kinds}. Look at them with verify_memory --tenant"
            f" {tenant.slug}, then run restore again with --repair"
        )
    with server_scope(tenant.server):
        execute(f"DROP SCHEMA IF EXISTS {replaced_schema_of(tenant.pk)} CASCADE")
    with public_scope(), transaction.atomic():
        reopen(tenant)
        record_command("restore", "restore", tenant, **recorded)
    # If the server is down, the jobs are claimed within the hour.
    with suppress(ServerDown), tenant_scope(tenant.pk):
        Job.objects.wake()
    return Restored(tenant, erasures, parked, report)


def _park_jobs() -> int:
    """Begin no job of the current tenant that people outside see; a person may retry it.

    What waits for a person goes on waiting. Return how many jobs are given up.
    """
    jobs = Job.objects.filter(tenant_id=required_tenant_id())
    jobs.filter(begun_at__isnull=False).update(**NOT_BEGUN)
    seen = jobs.filter(kind__in=[kind.name for kind in SEEN_BY_PEOPLE], failed_at__isnull=True)
    return seen.exclude(held_for=HeldFor.PERSON).update(
        failed_at=Now(), held_for="", error_code=RESTORED, last_error=PARKED
    )


def reopen(tenant: Tenant) -> None:
    """Let a closed tenant have the state that it had."""
    with public_scope():
        closed = Tenant.objects.filter(pk=tenant.pk, state=Tenant.State.RESTORING)
        closed.filter(deletion_asked_at__isnull=False).update(state=Tenant.State.SUSPENDED)
        closed.filter(state_before="").update(state=Tenant.State.ACTIVE)
        closed.update(state=F("state_before"), state_before="")
        tenant.refresh_from_db()
