"""The keys of open states of threads: from the event until the state ends."""

import json

import pytest
from django_redis import get_redis_connection

from konstruct.orchestrator import messages
from konstruct.orchestrator.handoff import escalations
from konstruct.orchestrator.handoff.escalations import OpenedBy
from konstruct.orchestrator.messages import Thread
from memory.models import Message
from memory.scopes import scope_number
from tenants import transaction
from tenants.context import tenant_scope
from tenants.redis_keys import escalation_status_key
from tests.konstruct.conftest import Program

pytestmark = pytest.mark.django_db(transaction=True)


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
