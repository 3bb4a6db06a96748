"""Repeats in a restored tenant the erasures of the journal since the backup.

It can be killed at any point and run again. First all requests are recorded, in one transaction.
Then each open request is carried out, including those that were open in the backup.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q
from django.db.models.functions import Now

from konstruct.api.models import ApiKey
from konstruct.orchestrator.identities.channel_identities import linked_ids
from konstruct.privacy.erasure import erasing, messages
from konstruct.privacy.retention import apply_rules, remove_before
from memory.models import MemoryEntry, Message
from tenants import journal, transaction
from tenants.audit.models import ErasureRequest, MessageErasure
from tenants.audit.people import pseudonyms
from tenants.audit.tombstones import FACT, KEY, MEMBER, ROWS, SESSION
from tenants.context import execute, fetch_column, required_tenant_id
from tenants.personal_data import personal_tables

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
        remove_before(UUID(entry["agent"]), 0, datetime.fromisoformat(entry["before"]))
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
    apply_rules()
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
    users = {name: user_id for user_id in _user_ids() for name in pseudonyms(user_id)}
    ids = fetch_column(
        "SELECT thread_id FROM memory_message UNION SELECT thread_id FROM checkpoints"
    )
    threads = {
        name: thread
        for thread in ids
        for name in journal.digests(required_tenant_id(), "thread", thread)
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
    for digest in journal.digests(required_tenant_id(), *digest_parts) & request_ids.keys():
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
        tenant_id = required_tenant_id()
        return [id for id in ids if journal.digests(tenant_id, kind, str(id)) & digests]

    keys = ApiKey.objects.filter(revoked_at__isnull=True)
    revoked = matching(KEY, keys.values_list("pk", flat=True))
    keys.filter(pk__in=revoked).update(revoked_at=Now())
    members = User.objects.filter(is_active=True)
    deactivated = matching(MEMBER, members.values_list("pk", flat=True))
    members.filter(pk__in=deactivated).update(is_active=False)
    facts = matching(FACT, MemoryEntry.objects.entries().values_list("pk", flat=True))
    MemoryEntry.objects.filter(Q(pk__in=facts) | Q(version_of__in=facts)).delete()
    sessions = matching(SESSION, fetch_column("SELECT DISTINCT thread_id FROM checkpoints"))
    for table in _CHECKPOINTS:
        execute(f"DELETE FROM {table} WHERE thread_id = ANY(%s)", [sessions])  # noqa: S608


def _user_ids() -> Iterator[str]:
    """Yield each value of the tenant's columns with users' ids."""
    columns = {
        (table, subject)
        for table, personal in personal_tables().items()
        for subject in personal.subjects
        if not personal.schema
    }
    selects = [
        f"SELECT DISTINCT {subject} AS id FROM {table}"  # noqa: S608
        for table, subject in sorted(columns)
    ]
    union = " UNION ".join(selects)
    yield from fetch_column(f"SELECT id FROM ({union}) AS found WHERE id IS NOT NULL")  # noqa: S608
