"""Carries out an erasure of a person. It can be killed at any point and run again: it continues.

It takes the person's messages from the outbox, so that no worker begins another reply, and waits
for replies in progress. Then it changes the logs, and removes keys of the cache and rows, in
batches. A search of all tables follows; rows that came meanwhile lead to another round. The request
keeps the progress, and becomes the receipt.
"""

import getpass
import logging
import socket
from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError
from django.db.models.functions import Now

from konstruct.orchestrator.identities.linked_ids import linked_ids
from konstruct.orchestrator.models import HistoryMerge, PendingReply
from konstruct.privacy.erasure import cache, records, rows, storage
from konstruct.privacy.erasure.person import Person
from konstruct.privacy.erasure.progress import ErasureProgress, Report, now
from konstruct.privacy.erasure.residue import choose_sequences, left_of, scan
from memory.models import Message
from tenants import journal
from tenants.audit.models import ErasureRequest
from tenants.audit.pseudonyms import pseudonym
from tenants.context import required_tenant_id, tenant_connection
from tenants.exceptions import KonstructError, SchemaBusy
from tenants.locking import ERASURE, owner_lock, schema_lock
from tenants.schemas.old_copies import drop_old_copies

logger = logging.getLogger(__name__)

# Rounds for a person who keeps sending messages; after them the request stays open.
MAX_ROUNDS = 5
# Another erasure of the tenant holds this lock for a moment, too.
LOCK_SECONDS = 1.0
# Logs that change even if nothing was stored of the person: they mention the request itself.
_ABOUT_THE_REQUEST = {"audit_accessevent", "django_admin_log"}


class NotErased(KonstructError):
    """Rows of the person are left, or new."""


class ErasedElsewhere(NotErased):
    """Another process is carrying out the erasure."""


def carry_out(
    request: ErasureRequest,
    *,
    rewrite: bool = False,
    is_replayed: bool = False,
    report: Report = logger.debug,
) -> ErasureRequest:
    """Erase the person whom the request names, in the current tenant.

    Args:
        rewrite: rewrite the files of all affected tables, whatever their size; a table cannot be
            used meanwhile.
        is_replayed: the journal of erasures has it already: a backup was restored.
        report: called with a description of each step.

    Returns:
        The request, with its receipt.

    Raises:
        NotErased: new messages keep coming, another process works at it, or the tenant is moved.
        JournalUnavailable: the rows are removed, and the journal of erasures cannot be written.
        UnknownTable: a table has no declaration of its personal data.
    """
    drop_old_copies(required_tenant_id())
    with owner_lock(ERASURE, request.pk) as is_held:
        if not is_held:
            raise ErasedElsewhere("another process is carrying it out at this moment")
        request.refresh_from_db()
        if request.done_at is not None:
            return request
        rows.refuse_unknown_tables()
        progress = ErasureProgress(request, report)
        if not is_replayed:
            _begin_in_journal(request)
        for _ in range(MAX_ROUNDS):
            person = _erase_once(request, progress)
            left = left_of(person)
            if not left:
                _refuse_while_copied()
                if not is_replayed:
                    write_journal(request, person.user_ids)
                return _end(request, person, progress, rewrite=rewrite)
        raise NotErased(
            f"after {MAX_ROUNDS} rounds there is still something in {', '.join(sorted(left))}:"
            " the request stays open"
        )


def _begin_in_journal(request: ErasureRequest) -> None:
    """Note the erasure before it begins, in case that the database is lost before its end.

    Where the journal cannot be written, nothing waits for it yet.
    """
    try:
        write_journal(request, linked_ids(request.user_id))
    except journal.JournalUnavailable as error:
        logger.warning("An erasure begins without its line in the journal: %s", error)


def write_journal(request: ErasureRequest, user_ids: Sequence[str]) -> None:
    """Note the erasure of a person by the digests of their ids.

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
        threads=[journal.digest(tenant_id, "thread", each) for each in request.threads],
    )


def _refuse_while_copied() -> None:
    """Raise NotErased if a copy of the tenant is being made: its files would hold the rows."""
    try:
        with schema_lock(tenant_connection().schema_name, wait_seconds=LOCK_SECONDS):
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
    progress.step("looks for ids and words that are left")
    residue = scan(person, request, progress.found["words"])
    progress.step("writes files anew")
    # Also tables that held rows of theirs for a while, such as the outbox.
    tables = set(rows.tables_of_people()) if _found(progress) else set()
    tables |= progress.found["tables"].keys()
    # From tables that all tenants share, only ids were removed: their files are left.
    tables &= set(rows.tables_of_tenant())
    stored = storage.settle(tables, rewrite=rewrite)
    receipt = _write_receipt(request, person, progress, residue, stored)
    # The progress on the request had the ids.
    storage.settle_one_more(ErasureRequest._meta.db_table, stored, rewrite=rewrite)
    receipt.receipt = {**(receipt.receipt or {}), "storage": stored}
    receipt.save(update_fields=["receipt"])
    return receipt


def _erase_once(request: ErasureRequest, progress: ErasureProgress) -> Person:
    """Remove all that is there at this moment; the person, with all that was found so far."""
    person = Person.of(request, progress.found)
    progress.begin_round(person, rows.count_messages(person))
    if "words" not in progress.found:
        progress.step("chooses words to look for")
        progress.found["words"] = choose_sequences(person, request)
    _end_moves(person)
    _take_from_workers(person, progress)
    try:
        # Before the rows: the logs are searched for ids of rows.
        progress.step("takes them out of the record")
        records.forget(person, progress)
        progress.add_cache_keys(cache.remove_keys(person))
        progress.step("removes messages")
        rows.remove_messages(person, progress)
        progress.step("removes the rest")
        rows.remove_rest(person, progress)
    except IntegrityError as error:
        # A new row refers to a row that was being removed: the next round removes both.
        logger.info("An erasure begins another round: %s", error)
        progress.reload()
    # Until now a window may have been rebuilt, and an access logged.
    progress.add_cache_keys(cache.remove_keys(person))
    records.forget(person, progress)
    return person


def _end_moves(person: Person) -> None:
    """End merges of the person's ids: all of them are erased."""
    if person.agent_id is None:
        HistoryMerge.objects.open().filter(from_user__in=person.user_ids).update(
            done_at=Now(), last_error="The person is erased."
        )


def _take_from_workers(person: Person, progress: ErasureProgress) -> None:
    """Delete the jobs of the person's replies: what a worker writes at this moment, it loses."""
    messages = Message.objects.filter(user_id__in=person.user_ids)
    if person.agent_id is not None:
        messages = messages.filter(agent_id=person.agent_id)
    waiting = PendingReply.objects.filter(message__in=messages)
    ids = [str(pk) for pk in waiting.values_list("pk", flat=True)]
    waiting.delete()
    progress.add_rows(PendingReply._meta.db_table, ids, len(ids), "removed")
    progress.save()


def _found(progress: ErasureProgress) -> bool:
    """Tell whether anything was stored of the person."""
    found = progress.found
    return bool(found["tables"].keys() - _ABOUT_THE_REQUEST or found["cache_keys"])


def _write_receipt(
    request: ErasureRequest,
    person: Person,
    progress: ErasureProgress,
    residue: dict[str, Any],
    stored: dict[str, Any],
) -> ErasureRequest:
    """Make the request the receipt. It names the person by keyed digests alone."""
    found = progress.found
    names = [pseudonym(user_id) for user_id in person.user_ids]
    request.refresh_from_db()
    request.receipt = {
        "found": _found(progress),
        "user_ids": names,
        "began_at": found["began_at"],
        "ended_at": now(),
        "carried_out_by": f"{getpass.getuser()}@{socket.gethostname()}",
        "rounds": found["rounds"],
        "tables": found["tables"],
        "cache_keys": found["cache_keys"],
        "left": 0,
        "mentions_by_others": residue.pop("ids"),
        "residue": residue,
        "threads_shared_with_others": person.shared_threads,
        "sessions_left": person.sessions_left,
        "storage": stored,
        "journal": "written" if journal.is_kept() else "none",
    }
    if person.agent_id is None:
        # Earlier receipts, of erasures by one agent, have no ids any more either.
        for earlier in ErasureRequest.objects.filter(
            user_id__in=person.user_ids, done_at__isnull=False
        ):
            earlier.user_id = pseudonym(earlier.user_id)
            earlier.save(update_fields=["user_id"])
    request.user_id, request.user_ids = names[0], names
    request.progress = None
    request.threads = []
    request.last_error = ""
    request.done_at = Now()
    request.save()
    request.refresh_from_db()
    return request
