"""Carrying out an erasure. It may be killed at any point and run again: it goes on where it was.

First the outbox, so that no worker begins anything new; then, when those at work are done, all rows
in one transaction; then the cache and the broker; then a look at everything. What was said
meanwhile makes another round. All of it is noted on the request, which in the end is the receipt.
"""

import getpass
import logging
import socket
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models.functions import Now

from konstruct.audit.models import ErasureRequest
from konstruct.orchestrator.locks import wait_for_thread, window_lock
from konstruct.orchestrator.messages import KonstructMessage
from konstruct.orchestrator.models import MoveOfPast, PendingReply
from konstruct.orchestrator.outbox import reason_of
from konstruct.trust import moving
from konstruct.trust.erasure import cache
from konstruct.trust.erasure.person import Person
from konstruct.trust.erasure.residue import residue_of
from konstruct.trust.erasure.rows import refuse_unknown_tables, remove_rows, sweep_up
from memory.models import Message
from tenants.context import tenant_scope
from tenants.exceptions import KonstructError
from tenants.models import Tenant

logger = logging.getLogger(__name__)

# Somebody who goes on talking is erased so often in one go; then the request stays open.
ROUNDS = 5


class NotErased(KonstructError):
    """Something of the person was left, or came anew."""


def carry_out_requested() -> int:
    """Carry out every open request of every tenant; how many were. Needs the owner's role."""
    done = 0
    for tenant_id in list(Tenant.objects.values_list("id", flat=True)):
        try:
            done += _carry_out_of(tenant_id)
        except Exception:
            logger.exception("The requests of erasure of tenant %s could not be done", tenant_id)
            connection.close()
    return done


def _carry_out_of(tenant_id: UUID) -> int:
    done = 0
    with tenant_scope(tenant_id):
        for request in ErasureRequest.objects.open():
            try:
                carry_out(request)
            except KonstructError as error:
                logger.warning("An erasure of tenant %s is not done: %s", tenant_id, error)
                ErasureRequest.objects.filter(pk=request.pk).update(last_error=reason_of(error))
            else:
                done += 1
    return done


def carry_out(request: ErasureRequest) -> ErasureRequest:
    """Erase whom the request names, in the tenant that we are in; the request, with its receipt.

    Raises:
        NotErased: they go on talking, or another process is at it.
        UnknownTable: there is a table of which nobody has said what to do with it.
    """
    with _only_one(request.pk):
        request.refresh_from_db()
        if request.done_at is not None:
            return request
        refuse_unknown_tables()
        _finish_moves(request)
        for _ in range(ROUNDS):
            _let_workers_finish(request)
            person = _remove_rows(request)
            removed = {
                "cache_keys": cache.remove_keys(person),
                "broker_tasks": cache.remove_tasks(person),
            }
            _add_to_progress(request, removed)
            found = residue_of(person)
            left = [*found.left, *cache.left_keys(person)]
            if not left:
                sweep_up()
                return _write_receipt(request, person, found.mentions)
        raise NotErased(
            f"after {ROUNDS} rounds there is still something in {', '.join(sorted(left))}:"
            " the request stays open"
        )


class _only_one(ExitStack):  # noqa: N801  (a context manager)
    """Hold the request against other processes."""

    def __init__(self, pk: UUID) -> None:
        super().__init__()
        self._key = f"konstruct.erasure {pk}"

    def __enter__(self) -> "_only_one":
        if not _ask("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", self._key):
            raise NotErased("another process is carrying it out at this moment")
        self.callback(_ask, "SELECT pg_advisory_unlock(hashtextextended(%s, 0))", self._key)
        return self


def _ask(sql: str, key: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql, [key])
        return bool(cursor.fetchone()[0])


def _finish_moves(request: ErasureRequest) -> None:
    """Move to the person what they said under an id that was linked just now."""
    for move in MoveOfPast.objects.open().filter(user_id=request.user_id):
        moving.carry_out(move)


def _let_workers_finish(request: ErasureRequest) -> None:
    """Take the person's messages out of the outbox, and wait for who answers one already."""
    of_person = {"user_id": request.user_id}
    if request.agent_id is not None:
        of_person["agent_id"] = str(request.agent_id)
    messages = Message.objects.filter(**of_person)
    PendingReply.objects.filter(message__in=messages).delete()
    threads = messages.values_list("agent_id", "thread_id").order_by().distinct()
    for agent_id, thread_id in list(threads):
        wait_for_thread(_message(request, agent_id, thread_id))


def _remove_rows(request: ErasureRequest) -> Person:
    """Remove all rows, and note in the same transaction what the cache may still hold."""
    with ExitStack() as stack:
        for agent_id in Person.of(request).agents:
            stack.enter_context(window_lock(_message(request, agent_id)))
        with transaction.atomic():
            locked = ErasureRequest.objects.select_for_update().get(pk=request.pk)
            progress: dict[str, Any] = locked.progress or {"began_at": _now(), "tables": {}}
            person = Person.of(request)
            if "ids" in progress:
                person = person.together_with(Person.read(request, progress))
            for table, done in remove_rows(person).items():
                progress["tables"].setdefault(table, []).append(done)
            locked.progress = {**progress, **person.written()}
            locked.save(update_fields=["progress"])
    return person


def _add_to_progress(request: ErasureRequest, removed: dict[str, int]) -> None:
    with transaction.atomic():
        locked = ErasureRequest.objects.select_for_update().get(pk=request.pk)
        progress: dict[str, Any] = locked.progress or {}
        for name, number in removed.items():
            progress[name] = progress.get(name, 0) + number
        locked.progress = progress
        locked.save(update_fields=["progress"])


def _write_receipt(
    request: ErasureRequest, person: Person, mentions: dict[str, int]
) -> ErasureRequest:
    request.refresh_from_db()
    progress: dict[str, Any] = request.progress or {}
    request.receipt = {
        "began_at": progress["began_at"],
        "ended_at": _now(),
        "carried_out_by": f"{getpass.getuser()}@{socket.gethostname()}",
        "tables": {
            # Rounds after the first removed what came meanwhile.
            table: rounds[0] if len(rounds) == 1 else rounds
            for table, rounds in progress["tables"].items()
        },
        "cache_keys": progress["cache_keys"],
        "broker_tasks": progress["broker_tasks"],
        "left": 0,
        "mentions_by_others": mentions,
        "threads_shared_with_others": person.shared_threads,
    }
    request.progress = None
    request.threads = []
    request.last_error = ""
    request.done_at = Now()
    request.save(update_fields=["receipt", "progress", "threads", "last_error", "done_at"])
    request.refresh_from_db()
    return request


def _message(request: ErasureRequest, agent_id: UUID, thread_id: str = "") -> KonstructMessage:
    """What the locks of a conversation are named after."""
    return KonstructMessage(
        id=request.pk,
        tenant_id=request.tenant_id,
        agent_id=agent_id,
        user_id=request.user_id,
        thread_id=thread_id,
        channel="",
        content="",
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
