"""Carrying out an erasure. It may be killed at any point and run again: it goes on where it was.

First the outbox, so that no worker begins anything new; then, when those at work are done, the
record, the cache and the rows, in batches; then a look at everything. What was said meanwhile
makes another round. All of it is noted on the request, which in the end is the receipt.
"""

import getpass
import logging
import socket
from contextlib import ExitStack
from typing import Any
from uuid import UUID

from django.db import IntegrityError
from django.db.models.functions import Now

from konstruct.orchestrator.messages import Thread, wait_for_threads
from konstruct.orchestrator.models import HistoryMerge, PendingReply
from konstruct.privacy.erasure.person import Person
from konstruct.privacy.erasure.progress import ErasureProgress, Report, now
from konstruct.privacy.erasure.residue import choose_sequences, left_of, scan
from konstruct.privacy.erasure.stores import cache, records, rows, storage
from memory.models import Message
from tenants.audit.models import ErasureRequest
from tenants.audit.pseudonyms import pseudonym
from tenants.context import required_tenant_id, tenant_connection
from tenants.exceptions import KonstructError, SchemaBusy
from tenants.locking.schema_locks import schema_lock
from tenants.locking.tenant_locks import held_lock
from tenants.schemas.old_copies import drop_old_copies

logger = logging.getLogger(__name__)

# Somebody who goes on talking is erased so often in one go; then the request stays open.
ROUNDS = 5
# For another erasure of the tenant, which has this lock for a moment too.
LOCK_SECONDS = 1.0
# Records that may be changed though nothing of the person was there: of the request itself.
_ABOUT_THE_REQUEST = {"audit_accessevent", "django_admin_log"}


class NotErased(KonstructError):
    """Something of the person was left, or came anew."""


class ErasedElsewhere(NotErased):
    """Another process is carrying the erasure out at this moment."""


def carry_out(
    request: ErasureRequest, *, rewrite: bool = False, report: Report = logger.debug
) -> ErasureRequest:
    """Erase whom the request names, in the tenant that we are in; the request, with its receipt.

    Args:
        rewrite: write every table that was touched anew, whatever its size; nobody can use a
            table meanwhile.
        report: is told each step.

    Raises:
        NotErased: they go on talking, another process is at it, or the tenant is being moved.
        UnknownTable: there is a table of which nobody has said what to do with it.
    """
    drop_old_copies(required_tenant_id())
    with _only_one(request.pk):
        request.refresh_from_db()
        if request.done_at is not None:
            return request
        rows.refuse_unknown_tables()
        progress = ErasureProgress(request, report)
        for _ in range(ROUNDS):
            person = _erase_once(request, progress)
            left = left_of(person)
            if not left:
                _refuse_while_copied()
                return _end(request, person, progress, rewrite=rewrite)
        raise NotErased(
            f"after {ROUNDS} rounds there is still something in {', '.join(sorted(left))}:"
            " the request stays open"
        )


def _refuse_while_copied() -> None:
    """Raise if a copy of the tenant is being made, whose files would hold what was removed."""
    try:
        with schema_lock(tenant_connection().schema_name, wait_seconds=LOCK_SECONDS):
            return
    except SchemaBusy as error:
        raise NotErased(
            "what was theirs is removed; the request stays open while the tenant is moved or"
            " migrated, and is looked at again"
        ) from error


def _end(
    request: ErasureRequest, person: Person, progress: ErasureProgress, *, rewrite: bool
) -> ErasureRequest:
    """Let files forget what was removed, and the request be the receipt."""
    progress.step("looks for ids and words that are left")
    residue = scan(person, request, progress.found["words"])
    progress.step("writes files anew")
    # Also those that held something of theirs for a while, such as the outboxes.
    tables = set(rows.tables_of_people()) if _found(progress) else set()
    tables |= progress.found["tables"].keys()
    # Of what all tenants share only ids were removed, and nobody waits for its file.
    tables &= set(rows.tables_of_tenant())
    stored = storage.settle(tables, rewrite=rewrite)
    receipt = _write_receipt(request, person, progress, residue, stored)
    # What was noted on the way had the ids.
    storage.settle_one_more(ErasureRequest._meta.db_table, stored, rewrite=rewrite)
    receipt.receipt = {**(receipt.receipt or {}), "storage": stored}
    receipt.save(update_fields=["receipt"])
    return receipt


def _erase_once(request: ErasureRequest, progress: ErasureProgress) -> Person:
    """Remove all that is there at this moment; the person, with all that was found so far."""
    person, earlier = Person.of(request), progress.person()
    if earlier is not None:
        person = person.together_with(earlier)
    progress.begin_round(person, rows.count_messages(person))
    if "words" not in progress.found:
        progress.step("chooses words to look for")
        progress.found["words"] = choose_sequences(person, request)
    _end_moves(person)
    _let_workers_finish(person, progress)
    try:
        # While the ids of what is theirs are there to be compared with.
        progress.step("takes them out of the record")
        records.forget(person, progress)
        progress.add_cache_keys(cache.remove_keys(person))
        progress.step("removes messages")
        rows.remove_messages(person, progress)
        progress.step("removes the rest")
        rows.remove_rest(person, progress)
    except IntegrityError as error:
        # Something came that refers to what was just being removed: the next round has both.
        logger.info("An erasure begins anew: %s", error)
        progress.reload()
    # A window may have been rebuilt from the transcript, and a look written down, until then.
    progress.add_cache_keys(cache.remove_keys(person))
    records.forget(person, progress)
    return person


class _only_one(ExitStack):  # noqa: N801  (a context manager)
    """Hold the request against other processes."""

    def __init__(self, pk: UUID) -> None:
        super().__init__()
        self._key = f"konstruct.erasure {pk}"

    def __enter__(self) -> "_only_one":
        if not self.enter_context(held_lock(self._key)):
            raise ErasedElsewhere("another process is carrying it out at this moment")
        return self


def _end_moves(person: Person) -> None:
    """Let nothing be moved between the ids of the person any more: all of them are erased."""
    if person.agent_id is None:
        HistoryMerge.objects.open().filter(from_user__in=person.user_ids).update(
            done_at=Now(), last_error="The person is erased."
        )


def _let_workers_finish(person: Person, progress: ErasureProgress) -> None:
    """Take the person's messages out of the outbox, and wait for who answers one already."""
    messages = Message.objects.filter(user_id__in=person.user_ids)
    if person.agent_id is not None:
        messages = messages.filter(agent_id=person.agent_id)
    waiting = PendingReply.objects.filter(message__in=messages)
    ids = [str(pk) for pk in waiting.values_list("pk", flat=True)]
    waiting.delete()
    progress.add_rows(PendingReply._meta.db_table, ids, len(ids), "removed")
    progress.save()
    threads = messages.values_list("agent_id", "user_id", "thread_id").order_by().distinct()
    wait_for_threads(Thread(*of_thread) for of_thread in threads)


def _found(progress: ErasureProgress) -> bool:
    """Whether anything was kept of the person."""
    found = progress.found
    return bool(found["tables"].keys() - _ABOUT_THE_REQUEST or found["cache_keys"])


def _write_receipt(
    request: ErasureRequest,
    person: Person,
    progress: ErasureProgress,
    residue: dict[str, Any],
    stored: dict[str, Any],
) -> ErasureRequest:
    """Let the request be the receipt. It names the person by keyed digests alone."""
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
    }
    if person.agent_id is None:
        # Receipts of one agent's erasures of before name them no more either.
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
