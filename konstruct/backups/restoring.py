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
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as LoginSession
from django.db import DatabaseError
from django.db.models import F, Q
from django.db.models.functions import Now

from konstruct.api.models import ApiKey
from konstruct.backups.dumping import Manifest, backup_name, check_tenant, dump_name, jobs_name
from konstruct.channels import delivery, inbox
from konstruct.consistency import Report, verify
from konstruct.orchestrator import models, replies
from konstruct.orchestrator.identities.channel_identities import linked_ids
from konstruct.orchestrator.messages import write_all_states
from konstruct.privacy.erasure import erasing, messages
from memory.models import MemoryEntry, Message
from tenants import context, journal, moving, personal_data, postgres_tools, serving, transaction
from tenants.audit import people
from tenants.audit.models import ErasureRequest, MessageErasure
from tenants.audit.operator_log import record_command, state_of_tenant
from tenants.audit.tombstones import FACT, KEY, MEMBER, ROWS, SESSION, write_tombstones
from tenants.exceptions import InvalidTenant, KonstructError, SchemaOutdated, WorkspaceTaken
from tenants.jobs import NOT_BEGUN
from tenants.models import Job, OperatorEvent, Tenant
from tenants.schemas import migrating, provisioning
from tenants.servers import cache_server, require_server

logger = logging.getLogger(__name__)

# Jobs with effects outside of the deployment. They may have been done after the backup.
KINDS_WITH_OUTSIDE_EFFECTS: Final = (replies.REPLIES, delivery.DELIVERIES, inbox.ARRIVALS)
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
    postgres_tools.refuse_pooled_owner()
    tenant = _find_or_register(entry, server)
    with context.server_scope(tenant.server), postgres_tools.schema_lock(tenant.schema_name):
        before = state_of_tenant(tenant)
        was_served = close(tenant)
        with postgres_tools.session_on(tenant.server) as session:
            postgres_tools.end_killed_restores(session, tenant.schema_name)
        time.sleep(moving.SETTLE_SECONDS)  # for running requests to end, as before a move
        try:
            entries = [*entries, *_journal_waiting_erasures(tenant)]
            _load(tenant, path)
        except BaseException:
            if was_served:
                reopen(tenant)
            raise
        return settle(tenant, entries, repair=repair, before=before, backup=backup_name(manifest))


def _refuse_unknown_migrations(entry: dict[str, Any]) -> None:
    known = migrating.known_migrations()
    known_apps = {name.partition(".")[0] for name in known}
    unknown = set(entry["migrations"]) - known
    if unknown := {name for name in unknown if name.partition(".")[0] in known_apps}:
        raise SchemaOutdated(
            f"the backup of {entry['slug']!r} has migrations that this version does not know"
            f" ({sorted(unknown)[0]}, …): restore it with the version that made it, then upgrade"
        )


def _find_or_register(entry: dict[str, Any], server: str) -> Tenant:
    """Return the tenant of a backup. If this deployment does not have it, register it as closed."""
    with context.public_scope():
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
        domains = entry["domains"] or [provisioning.default_domain(tenant.slug)]

        def complete(registered: Tenant) -> None:
            cache_server(registered.pk, registered.server)
            with context.tenant_scope(registered.pk):
                for channel, workspace in entry["claims"]:
                    try:
                        serving.claim_workspace(channel, workspace)
                    except WorkspaceTaken as error:
                        logger.warning("%s", error)
            record_command("restore", "create", registered, after=state_of_tenant(registered))

        provisioning.register(tenant, domains, complete)
        journal.append(tenant.pk, journal.RESTORED)
        return tenant


def _journal_waiting_erasures(tenant: Tenant) -> list[journal.Entry]:
    """Write erasures that the owner's worker has not written yet into the journal; return them.

    Their requests are in the schema that is replaced, and so are their jobs.
    """
    if not journal.is_enabled():
        return []
    position = journal.position()
    with context.tenant_scope(tenant.pk):
        write_tombstones()
        try:
            if migrating.schema_exists(tenant.schema_name):
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
    with context.public_scope():
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
    with context.public_scope():
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
    migrated = migrating.migrate_schema(tenant.schema_name)
    if migrated.error:
        raise NotConsistent(
            f"tenant {tenant.slug!r} cannot be migrated, and stays closed: {migrated.error}"
        )
    provisioning.clear_tenant_cache(tenant)
    with context.server_scope(tenant.server), context.tenant_scope(tenant.pk):
        jobs_given_up = _give_up_jobs()
        LoginSession.objects.all().delete()
        erasures = replay(entries_of_tenant)
        write_all_states(tenant.pk)
    report = verify(tenant.pk, tenant.slug, repair=repair)
    if report.findings:
        kinds = ", ".join(sorted({finding.kind for finding in report.findings}))
        raise NotConsistent(
            f"tenant {tenant.slug!r} is restored and stays closed, because verify_memory finds"
            f" {len(report.findings)} × {kinds}. List them with verify_memory --tenant"
            f" {tenant.slug}, then run restore again with --repair"
        )
    with context.public_scope(), transaction.atomic():
        reopen(tenant)
        record_command("restore", "restore", tenant, **log_detail)
    provisioning.wake_jobs(tenant.pk)
    return Restored(tenant, erasures, jobs_given_up, report)


def _give_up_jobs() -> int:
    """Give up jobs of the current tenant with outside effects; a person may retry them.

    Jobs that wait for a person are not changed. Return the number of jobs.
    """
    jobs = Job.objects.filter(tenant_id=context.required_tenant_id())
    jobs.filter(begun_at__isnull=False).update(**NOT_BEGUN)
    unfailed = jobs.filter(
        kind__in=[kind.name for kind in KINDS_WITH_OUTSIDE_EFFECTS], failed_at__isnull=True
    )
    return unfailed.exclude(held_for=models.HeldFor.PERSON).update(
        failed_at=Now(), held_for="", error_code=RESTORED, last_error=GIVEN_UP_REASON
    )


def reopen(tenant: Tenant) -> None:
    """Return a closed tenant to its state before."""
    with context.public_scope():
        closed = Tenant.objects.filter(pk=tenant.pk, state=Tenant.State.RESTORING)
        closed.filter(deletion_asked_at__isnull=False).update(state=Tenant.State.SUSPENDED)
        closed.filter(state_before="").update(state=Tenant.State.ACTIVE)
        closed.update(state=F("state_before"), state_before="")
        tenant.refresh_from_db()


REQUEST_FIELDS: Final = {
    "reason": "Repeated after a backup was restored.",
    "requested_by": "journal of erasures",
}
_CHECKPOINTS: Final = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")

Entries = list[journal.Entry]


def replay(entries: Iterable[journal.Entry]) -> int:
    """Repeat the erasures of the journal's lines in the current tenant. Needs the owner's role.

    Args:
        entries: lines of this tenant since its backup, in their order.

    Returns:
        The number of erasures of persons, messages and conversations that were carried out.

    Raises:
        NotErased: an erasure could not be completed. The next call continues.
    """
    by_kind: dict[str, Entries] = defaultdict(list)
    for entry in entries:
        by_kind[entry["kind"]].append(entry)
    _remove_rows({row for entry in by_kind[ROWS] for row in entry["rows"]})
    for entry in by_kind["retention"]:
        messages.remove_before(UUID(entry["agent"]), 0, datetime.fromisoformat(entry["before"]))
    with transaction.atomic():
        _request_persons(by_kind["person"])
        _request_messages(by_kind["message"], by_kind["conversation"])
    persons = list(ErasureRequest.objects.open())
    for request in persons:
        erasing.carry_out(
            request, is_replayed=request.requested_by == REQUEST_FIELDS["requested_by"]
        )
    message_erasures = list(MessageErasure.objects.filter(done_at__isnull=True))
    for erasure_request in message_erasures:
        messages.carry_out(
            erasure_request,
            is_replayed=erasure_request.requested_by == REQUEST_FIELDS["requested_by"],
        )
    messages.apply_rules()
    return len(persons) + len(message_erasures)


def journal_open_requests() -> None:
    """Write the open erasures of the current tenant into the journal before its rows are
    replaced.
    """
    for request in ErasureRequest.objects.open():
        erasing.write_journal(request, linked_ids(request.user_id))
    for message_erasure in MessageErasure.objects.filter(done_at__isnull=True):
        messages.write_journal(message_erasure)


def _request_persons(entries: Entries) -> None:
    """Request the erasure of each person whose id has a digest in the lines."""
    if not entries:
        return
    selects = [
        f"SELECT DISTINCT {subject} FROM {table} WHERE {subject} IS NOT NULL"  # noqa: S608
        for table, personal in personal_data.personal_tables().items()
        for subject in personal.subjects
        if not personal.schema
    ]
    user_ids = context.fetch_column(" UNION ".join(selects))
    users = {name: user_id for user_id in user_ids for name in people.pseudonyms(user_id)}
    ids = context.fetch_column(
        "SELECT thread_id FROM memory_message UNION SELECT thread_id FROM checkpoints"
    )
    threads = {
        name: thread
        for thread in ids
        for name in journal.digests(context.required_tenant_id(), "thread", thread)
    }
    for entry in entries:
        existing = ErasureRequest.objects.filter(pk=entry["request"]).first()
        if existing is not None and existing.done_at is not None:
            continue  # it was completed before the backup, or by a replay that was killed later
        covered = set(linked_ids(existing.user_id)) if existing else set()
        for user_id in [users[name] for name in entry["users"] if name in users]:
            if user_id not in covered:
                covered.update(linked_ids(user_id), [user_id])
                known_threads = [threads[name] for name in entry["threads"] if name in threads]
                _request(
                    ErasureRequest,
                    entry["request"],
                    {"threads": known_threads, "user_ids": linked_ids(user_id)},
                    user_id=user_id,
                    agent_id=entry["agent"],
                )


def _request_messages(message_entries: Entries, conversation_entries: Entries) -> None:
    """Request the erasure of each message and conversation whose id has a digest in the lines."""
    request_ids = {entry["erased"]: entry["request"] for entry in message_entries}
    conversation = ("agent_id", "user_id", "thread_id")
    rows = Message.objects.order_by()
    if request_ids:
        for pk, *identity in rows.values_list("pk", *conversation).iterator():
            _request_matching(request_ids, ("message", str(pk)), identity, message_id=pk)
    request_ids = {entry["erased"]: entry["request"] for entry in conversation_entries}
    if request_ids:
        for identity in rows.values_list(*conversation).distinct().iterator():
            digest_parts = ("conversation", str(identity[0]), *identity[1:])
            _request_matching(request_ids, digest_parts, identity, message_id=None)


def _request_matching(
    request_ids: dict[str, str],
    digest_parts: tuple[str, ...],
    identity: Iterable[Any],
    **fields: Any,
) -> None:
    agent_id, user_id, thread_id = identity
    for digest in journal.digests(context.required_tenant_id(), *digest_parts) & request_ids.keys():
        done = MessageErasure.objects.filter(pk=request_ids[digest], done_at__isnull=False)
        if not done.exists():
            fields |= {"agent_id": agent_id, "user_id": user_id, "thread_id": thread_id}
            _request(MessageErasure, request_ids[digest], {}, **fields)


def _request(
    model: type[ErasureRequest] | type[MessageErasure],
    request_id: str,
    extra_fields: dict[str, Any],
    **fields: Any,
) -> None:
    """Record a request under its original id, unless there is an open one for the same rows."""
    if model._default_manager.filter(**fields, done_at__isnull=True).exists():
        return
    is_free = not model._default_manager.filter(pk=request_id).exists()
    primary_key = {"pk": UUID(request_id)} if is_free else {}
    model._default_manager.create(**primary_key, **fields, **extra_fields, **REQUEST_FIELDS)


def _remove_rows(digests: set[str]) -> None:
    """Revoke, deactivate or remove the rows of the tenant with these digests."""
    if not digests:
        return

    def matching(kind: str, ids: Iterable[Any]) -> list[Any]:
        tenant_id = context.required_tenant_id()
        return [id for id in ids if journal.digests(tenant_id, kind, str(id)) & digests]

    keys = ApiKey.objects.filter(revoked_at__isnull=True)
    revoked = matching(KEY, keys.values_list("pk", flat=True))
    keys.filter(pk__in=revoked).update(revoked_at=Now())
    members = User.objects.filter(is_active=True)
    deactivated = matching(MEMBER, members.values_list("pk", flat=True))
    members.filter(pk__in=deactivated).update(is_active=False)
    facts = matching(FACT, MemoryEntry.objects.entries().values_list("pk", flat=True))
    MemoryEntry.objects.filter(Q(pk__in=facts) | Q(version_of__in=facts)).delete()
    sessions = matching(SESSION, context.fetch_column("SELECT DISTINCT thread_id FROM checkpoints"))
    for table in _CHECKPOINTS:
        context.execute(f"DELETE FROM {table} WHERE thread_id = ANY(%s)", [sessions])  # noqa: S608
