"""Carries out an erasure of a person. It can be killed at any point, and continues when run again.

Writers refuse the person since the request. Each round removes keys of the cache and rows. If a
worker added rows meanwhile, there is another round. At the end the row of the person is deleted,
with the pseudonym of the access log. The request stores the progress, and becomes the receipt.
"""

import getpass
import logging
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from django.db import IntegrityError
from django.db.models import QuerySet
from django.db.models.functions import Now

from konstruct.api.models import IdempotencyRecord
from konstruct.orchestrator.identities import channel_identities, erasure_requests
from konstruct.orchestrator.models import HistoryMerge
from konstruct.privacy.erasure import messages, person as persons
from konstruct.privacy.erasure.person import Person, add_rows, now
from memory.models import Message
from tenants import journal, postgres_tools, transaction
from tenants.audit.models import ErasureRequest
from tenants.audit.people import Person as PersonRow, close_people, end_erasure, pseudonym
from tenants.context import connection, fetch_column, required_tenant_id, tenant_connection
from tenants.exceptions import KonstructError, SchemaBusy
from tenants.outbox import events, models as outbox
from tenants.schemas.provisioning import drop_left_overs

logger = logging.getLogger(__name__)

# Approximate number of messages that are removed in one transaction, with their replies.
BATCH = 1000
# Rounds for workers that continue to write rows; afterwards the request stays open.
MAX_ROUNDS = 5
# How long to wait for the lock of the schema. Another erasure of the tenant may hold it shortly.
LOCK_TIMEOUT_SECONDS = 1.0
# Exports of the team, which every erasure deletes.
_NOT_OF_PERSON = {"audit_listexport", "audit_listexportpart"}

Report = Callable[[str], None]
_CREATED: Final = f"DELETE FROM api_creation WHERE made IN ({persons.IDS}) RETURNING made::text"


class NotErased(KonstructError):
    """Rows of the person are left, or were added."""


class ErasureInProgress(NotErased):
    """Another process is carrying out the erasure."""


class ErasureProgress:
    """Counts of removed rows, and the current step. The request stores them."""

    def __init__(self, request: ErasureRequest, report: Report) -> None:
        self._request = request
        self.report = report
        self.found: dict[str, Any] = request.progress or {
            "began_at": now(),
            "rounds": 0,
            "step": "begins",
            "tables": {},
            "cache_keys": 0,
            "messages": {"removed": 0, "of": 0},
            "replies_erased": 0,
            "replies_kept": 0,
        }

    def reload(self) -> None:
        """Discard counts of a transaction that was rolled back."""
        self._request.refresh_from_db(fields=["progress"])
        self.found = self._request.progress or self.found

    def step(self, step: str) -> None:
        """Record the step that begins."""
        self.found["step"] = step
        self.save()
        self.report(step)

    def add_rows(self, table: str, keys: Iterable[str] | None, count: int, action: str) -> None:
        """Count rows that were removed or changed; call `save` in the same transaction."""
        add_rows(self.found["tables"], table, keys, count, action)

    def add_cache_keys(self, count: int) -> None:
        """Count keys that were removed."""
        self.found["cache_keys"] += count
        self.save()

    def save(self) -> None:
        """Save the progress on the request."""
        ErasureRequest.objects.filter(pk=self._request.pk).update(progress=self.found)


def carry_out(
    request: ErasureRequest,
    *,
    rewrite: bool = False,
    is_replayed: bool = False,
    report: Report = logger.debug,
) -> ErasureRequest:
    """Erase the person of the request in the current tenant.

    Args:
        request: the request.
        rewrite: whether to rewrite the files of all affected tables, of any size. A table is locked
            meanwhile.
        is_replayed: whether the erasure is in the journal already, because a backup was restored.
        report: called with a description of each step.

    Returns:
        The request, with its receipt.

    Raises:
        NotErased: workers continue to write rows of the person, another process carries out the
            erasure, or the tenant is being moved.
        JournalUnavailable: the rows are removed, and the journal of erasures cannot be written.
        UnknownTable: a table has no declaration of its personal data.
    """
    drop_left_overs(required_tenant_id())
    with postgres_tools.owner_lock(postgres_tools.ERASURE, request.pk) as is_held:
        if not is_held:
            raise ErasureInProgress("another process is carrying it out at this moment")
        request.refresh_from_db()
        if request.done_at is not None:
            return request
        persons.refuse_unknown_tables()
        progress = ErasureProgress(request, report)
        if not is_replayed:
            try:  # in case the database is lost meanwhile
                write_journal(request, channel_identities.linked_ids(request.user_id))
            except journal.JournalUnavailable as error:  # it is written again at the end
                logger.warning("An erasure begins without its line in the journal: %s", error)
        close_people(channel_identities.linked_ids(request.user_id))
        for _ in range(MAX_ROUNDS):
            person = _erase_once(request, progress, is_replayed=is_replayed)
            remaining = persons.count_remaining(person)
            if not remaining:
                _refuse_while_copied()
                if not is_replayed:
                    write_journal(request, person.user_ids)
                return _end(request, person, progress, rewrite=rewrite)
        raise NotErased(
            f"after {MAX_ROUNDS} rounds there is still something in {', '.join(sorted(remaining))}:"
            " the request stays open"
        )


def write_journal(request: ErasureRequest, user_ids: Sequence[str]) -> None:
    """Write the erasure of a person into the journal, with the digests of their ids.

    The chosen replies to others that are left have lines as erased messages.

    Raises:
        JournalUnavailable: the journal of erasures cannot be written.
    """
    tenant_id = required_tenant_id()
    journal.append(
        tenant_id,
        "person",
        request=str(request.pk),
        users=[pseudonym(user_id) for user_id in user_ids],
        agent=request.agent_id and str(request.agent_id),
        threads=[journal.digest(tenant_id, "thread", thread) for thread in request.threads],
    )
    for reply_id in _chosen_replies(request, user_ids).values_list("pk", flat=True):
        messages.write_journal_of_message(request.pk, reply_id)


def _chosen_replies(request: ErasureRequest, user_ids: Sequence[str]) -> "QuerySet[Message]":
    affected = erasure_requests.replies_to_others(user_ids, agent_id=request.agent_id)
    return affected if request.all_replies else affected.filter(pk__in=request.reply_ids)


def _refuse_while_copied() -> None:
    """Raise NotErased if a copy of the tenant is being made: the copy would contain the rows."""
    try:
        with postgres_tools.schema_lock(
            tenant_connection().schema_name, wait_seconds=LOCK_TIMEOUT_SECONDS
        ):
            return
    except SchemaBusy as error:
        raise NotErased(
            "their rows are removed; the request stays open while the tenant is moved or"
            " migrated, and is looked at again"
        ) from error


def _end(
    request: ErasureRequest, person: Person, progress: ErasureProgress, *, rewrite: bool
) -> ErasureRequest:
    """Remove the rows from files, and make the request the receipt."""
    progress.step("writes files anew")
    # All tables: some had rows of the person for a short time, such as jobs.
    tables = set(persons.tables_of_people()) if _has_data(progress) else set()
    tables |= progress.found["tables"].keys()
    # Tables of all tenants are not rewritten: only ids were removed from them.
    tables &= set(persons.tables_of_tenant())
    stored = persons.purge_files(tables, rewrite=rewrite)
    receipt = _write_receipt(request, person, progress, stored)
    # Old versions of the request row contain the person's ids.
    for model in (ErasureRequest, PersonRow):
        persons.purge_one_more_file(model._meta.db_table, stored, rewrite=rewrite)
    receipt.receipt = {**(receipt.receipt or {}), "storage": stored}
    receipt.save(update_fields=["receipt"])
    return receipt


def _erase_once(request: ErasureRequest, progress: ErasureProgress, *, is_replayed: bool) -> Person:
    """Run one round of the erasure; return the person, with all ids and threads found so far."""
    person = Person.of(request, progress.found)
    progress.found |= {**person.fields(), "rounds": progress.found["rounds"] + 1}
    done = progress.found["messages"]
    done["of"] = done["removed"] + person.messages.count()
    progress.step("removes keys")
    if person.agent_id is None:
        HistoryMerge.objects.open().filter(from_user__in=person.user_ids).update(
            done_at=Now(), last_error="The person is erased."
        )
    try:
        with transaction.atomic():
            # The records of Idempotency-Keys that created rows of the person, while these exist.
            keys = fetch_column(_CREATED, person.parameters())
            progress.add_rows(IdempotencyRecord._meta.db_table, keys, len(keys), "removed")
            progress.save()
        progress.add_cache_keys(persons.remove_keys(person))
        _remove_replies_to_others(request, person, progress, is_replayed=is_replayed)
        progress.step("removes messages")
        # Ends: each batch removes messages of a person who can send no more.
        while batch := persons.next_messages(person, BATCH):
            done = progress.found["messages"]
            done["removed"] += len(batch)
            done["of"] = max(done.values())
            _erase_batch(batch, person, progress)
            progress.report(f"{done['removed']} of {done['of']} messages removed")
        progress.step("removes the rest")
        with transaction.atomic(), connection.cursor() as cursor:
            for table, data in persons.deleted_tables():
                if table != persons.MESSAGES:
                    values = person.parameters()
                    persons.delete_rows(
                        cursor, table, data, data.of_person, values, progress.add_rows
                    )
            progress.save()
    except IntegrityError as error:
        # A new row refers to a row that is being removed: the next round removes both.
        logger.info("An erasure begins another round: %s", error)
        progress.reload()
    # Meanwhile a window may have been rebuilt.
    progress.add_cache_keys(persons.remove_keys(person))
    return person


def _remove_replies_to_others(
    request: ErasureRequest, person: Person, progress: ErasureProgress, *, is_replayed: bool
) -> None:
    """Remove the chosen replies to others; count the kept ones while their prompts are known."""
    chosen = _chosen_replies(request, person.user_ids)
    if not is_replayed and chosen.exists():
        # Before they are removed: if the journal cannot be written, they stay.
        write_journal(request, person.user_ids)
    # Ends: each batch removes replies, and none is written with the words of an erased person.
    while ids := list(chosen.values_list("pk", flat=True)[:BATCH]):
        _erase_batch(messages.with_copies(ids), person, progress)
        progress.found["replies_erased"] += len(ids)
        progress.save()
    left = erasure_requests.replies_to_others(person.user_ids, agent_id=person.agent_id).count()
    progress.found["replies_kept"] = max(progress.found["replies_kept"], left)


def _erase_batch(batch: Sequence[Message], person: Person, progress: ErasureProgress) -> None:
    # Prompts of other agents' replies to the person stay.
    own = person.user_ids if person.agent_id is None else ()
    keys = messages.erase_batch(
        batch, progress.add_rows, save=lambda _: progress.save(), without_users=own
    )
    progress.add_cache_keys(keys)


def _has_data(progress: ErasureProgress) -> bool:
    """Return whether any data of the person was stored."""
    found = progress.found
    return bool(found["tables"].keys() - _NOT_OF_PERSON or found["cache_keys"])


def _write_receipt(
    request: ErasureRequest, person: Person, progress: ErasureProgress, stored: dict[str, Any]
) -> ErasureRequest:
    """Turn the request into the receipt, which has only keyed digests of the person's ids."""
    found = progress.found
    names = [pseudonym(user_id) for user_id in person.user_ids]
    request.refresh_from_db()
    request.receipt = {
        "found": _has_data(progress),
        "user_ids": names,
        "began_at": found["began_at"],
        "ended_at": now(),
        "carried_out_by": f"{getpass.getuser()}@{socket.gethostname()}",
        "rounds": found["rounds"],
        "tables": found["tables"],
        "cache_keys": found["cache_keys"],
        "left": 0,
        "threads_shared_with_others": len(person.shared_threads),
        "sessions_left": len(person.other_sessions),
        "replies_to_others": {
            "chosen": "all" if request.all_replies else len(request.reply_ids),
            "erased": found["replies_erased"],
            "kept": found["replies_kept"],
        },
        "storage": stored,
        "journal": "written" if journal.is_enabled() else "none",
    }
    request.user_id, request.user_ids = names[0], names
    request.progress = None
    request.threads = []
    request.last_error = ""
    request.done_at = Now()
    with transaction.atomic():
        if person.agent_id is None:
            # Ids in earlier receipts, of erasures by one agent, are removed too.
            for earlier in ErasureRequest.objects.filter(
                user_id__in=person.user_ids, done_at__isnull=False
            ):
                earlier.user_id = pseudonym(earlier.user_id)
                earlier.save(update_fields=["user_id"])
        request.save()
        events.record_event(outbox.EventType.ERASURE_DONE, request.pk)
        end_erasure(person.user_ids, agent_id=person.agent_id)
    request.refresh_from_db()
    return request
