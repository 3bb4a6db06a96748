"""Escalations while a worker, a program or an erasure changes the thread's messages."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest
from django.db import connections
from django_redis import get_redis_connection

from konstruct.orchestrator import messages, pipeline, replies
from konstruct.orchestrator.handoff import escalations
from konstruct.orchestrator.handoff.escalations import OpenedBy, Thread
from konstruct.orchestrator.models import Escalation, HeldFor, PendingReply
from memory.models import Message
from memory.models.recall import scope_number
from tenants import transaction
from tenants.context import connection, tenant_scope
from tenants.redis_keys import escalation_status_key
from tests import database
from tests.konstruct.conftest import Program, SendMessage

pytestmark = pytest.mark.django_db(transaction=True)


_IS_BLOCKING = """
SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND %s = ANY (pg_blocking_pids(pid)))
"""


@contextmanager
def meanwhile(program: Program, function: Callable[[], Any]) -> Iterator[Future[Any]]:
    """Call the function on another connection after the block, until it waits for this one."""
    has_locks = Event()

    def call() -> Any:
        has_locks.wait(60)
        try:
            with tenant_scope(program.tenant.id):
                return function()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        yield (future := threads.submit(call))
        has_locks.set()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            session = cursor.fetchone()
        with database.as_owner(), connection.cursor() as cursor:
            for _ in range(500):
                cursor.execute(_IS_BLOCKING, session)
                if future.done() or cursor.fetchone() == (True,):
                    break
                time.sleep(0.01)
        assert not future.done(), future.exception()


def escalate(thread: Thread) -> bool:
    return escalations.open_escalation(thread, opened_by=OpenedBy.PROGRAM, reason="VIP")[1]


def test_a_message_that_a_worker_finishes_while_a_person_is_called_is_not_held(
    send_message: SendMessage, program: Program
) -> None:
    """The other message of the thread is held."""
    answered, waiting = (
        send_message("Hello", handled=False),
        send_message("And this?", handled=False),
    )
    thread = Thread.of(answered)
    with meanwhile(program, lambda: escalate(thread)) as opened:
        replies.REPLIES.finish(answered.id)
    assert opened.result() is True
    assert list(PendingReply.objects.held(HeldFor.PERSON).values_list("pk", flat=True)) == [
        waiting.id
    ]
    assert Escalation.objects.open().to_people().count() == 1


@pytest.mark.parametrize("agent_answers", [True, False])
def test_message_erased_during_resolution_is_not_restored(
    send_message: SendMessage, program: Program, agent_answers: bool
) -> None:
    send_message("Hello")
    thread = Thread.of(send_message("talk to a human"))
    held = send_message("Are you there?")
    escalation = Escalation.objects.open().get()

    def resolve() -> None:
        escalations.resolve(escalation.pk, by="eva", let_agent_answer=agent_answers)

    with meanwhile(program, resolve) as resolved:
        PendingReply.objects.filter(pk=held.id).delete()
    assert resolved.result() is None
    assert not Escalation.objects.open().exists()
    assert not PendingReply.objects.filter(pk=held.id).exists()
    escalate(thread)


def test_a_worker_and_a_call_for_a_person_at_once_lose_no_message(
    send_message: SendMessage, program: Program
) -> None:
    """In either order it is answered by the agent, or held for the person."""
    for number in range(5):
        message = send_message("Hello", handled=False, thread_id=f"t{number}")

        def work(message: Message = message) -> None:
            try:
                pipeline.handle(tenant_id=program.tenant.id, message_id=message.id)
            finally:
                connections.close_all()

        with ThreadPoolExecutor(1) as threads:
            working = threads.submit(work)
            assert escalate(Thread.of(message))
            working.result()
        pending = PendingReply.objects.filter(pk=message.id).values_list("held_for", flat=True)
        is_answered = Message.objects.filter(in_reply_to=message).exists()
        assert list(pending) == ([] if is_answered else [HeldFor.PERSON])


@pytest.fixture
def thread(program_a: Program) -> Thread:
    program_a.send("Hello", thread_id="t")
    with tenant_scope(program_a.tenant.id):
        return Thread.of(Message.objects.get())


def read(program: Program) -> dict[str, str] | None:
    value = get_redis_connection("default").get(escalation_status_key(program.tenant.id, "t"))
    return None if value is None else json.loads(value)


def open_escalation(thread: Thread) -> escalations.Escalation:
    opened, _ = escalations.open_escalation(
        thread, opened_by=OpenedBy.PROGRAM, reason="It is urgent."
    )
    return opened


def test_a_key_exists_from_the_commit_until_the_state_ends(
    program_a: Program, thread: Thread
) -> None:
    with tenant_scope(program_a.tenant.id):
        with transaction.atomic():
            opened = open_escalation(thread)
            assert read(program_a) is None
        scope = str(scope_number(thread.agent_id, thread.user_id))
        assert read(program_a) == {scope: "person"}
        key = escalation_status_key(program_a.tenant.id, "t")
        assert get_redis_connection("default").ttl(key) == -1
        escalations.resolve(opened.pk, by="eva", let_agent_answer=True)
        assert read(program_a) is None


def test_the_keys_are_written_again_after_a_flush(program_a: Program, thread: Thread) -> None:
    with tenant_scope(program_a.tenant.id):
        open_escalation(thread)
        before = read(program_a)
    get_redis_connection("default").flushdb()
    assert messages.write_states_after_flush()
    assert before is not None
    with tenant_scope(program_a.tenant.id):
        assert read(program_a) == before
    assert not messages.write_states_after_flush()
