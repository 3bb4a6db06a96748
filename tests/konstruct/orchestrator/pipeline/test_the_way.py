"""The cost of a message in SQL statements."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.test.utils import CaptureQueriesContext

from konstruct.orchestrator import tool_calls
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.handoff import escalations, handovers
from konstruct.orchestrator.handoff.escalations import OpenedBy, Thread
from konstruct.orchestrator.models import Agent, PendingReply
from konstruct.orchestrator.replies import REPLIES
from konstruct.orchestrator.tasks import answer_message
from memory.embedding.embedder import get_embedder
from memory.models import Message
from tenants import jobs
from tenants.context import connection, tenant_scope
from tests.konstruct.conftest import Program, SendMessage
from tests.servers.llm import Answer, LLMServer

# Runs functions of on_commit, as a transaction of the product does.
Committed = Callable[[], AbstractContextManager[Any]]


@pytest.fixture(autouse=True)
def _model() -> None:
    """Load the embedding model first."""
    get_embedder()


@pytest.fixture
def committed(django_capture_on_commit_callbacks: Any) -> Committed:
    return lambda: django_capture_on_commit_callbacks(execute=True)


def statements_of(message: Message) -> list[str]:
    """Return the statements of a worker for the message.

    Savepoints are not counted, and a query whose result the process keeps.
    """
    with CaptureQueriesContext(connection) as queries:
        lease = jobs.claim(REPLIES)
        assert lease is not None
        assert lease.key == message.id
        with tenant_scope(lease.tenant_id), REPLIES.attempt(lease):
            answer_message(lease)
    uncounted = ("SAVEPOINT", "RELEASE", "ROLLBACK TO")
    statements = [query["sql"] for query in queries]
    return [
        statement
        for statement in statements
        if not statement.startswith(uncounted) and "tenants_schemastate" not in statement
    ]


def require(budget: int, message: Message) -> None:
    statements = statements_of(message)
    shown = (f"{len(statements)} statements", *(statement[:200] for statement in statements))
    assert len(statements) == budget, "\n".join(shown)


def test_a_plain_reply(send_message: SendMessage, committed: Committed) -> None:
    """The first message of a user and a thread reads tables that later ones find in the cache."""
    with committed():
        first = send_message(handled=False)
    require(25, first)
    with committed():
        second = send_message(handled=False)
    require(24, second)
    assert not PendingReply.objects.exists()


def test_a_reply_with_a_tool_call(
    send_message: SendMessage, program: Program, llm_server: LLMServer, committed: Committed
) -> None:
    """The request for consent; and, after consent, the call and the reply."""
    Agent.objects.filter(pk=program.agent.pk).update(tools=["remember_fact"])
    with committed():
        send_message()
    wants = {"function": {"name": "remember_fact", "arguments": '{"fact": "Maria likes tea."}'}}
    llm_server.answers = [Answer({"tool_calls": [wants]})]
    with committed():
        message = send_message("Remember that I like tea.", handled=False)
    require(17, message)
    (call,) = tool_calls.calls_awaiting_consent(message.id)
    with committed():
        tool_calls.decide(message.tenant_id, call.id, True, by="maria")
    require(38, message)
    assert not PendingReply.objects.exists()


def test_a_held_thread(send_message: SendMessage, committed: Committed) -> None:
    with committed():
        thread = Thread.of(send_message())
        escalations.open_escalation(thread, opened_by=OpenedBy.PROGRAM, reason="It is urgent.")
    with committed():
        first = send_message(handled=False)
    require(8, first)
    with committed():
        second = send_message(handled=False)
    require(8, second)
    assert PendingReply.objects.held().count() == 2


def test_a_handed_over_thread(
    send_message: SendMessage, program: Program, committed: Committed
) -> None:
    bert = create_agent(tenant_id=program.tenant.id, name="bert")
    with committed():
        handovers.hand_over(
            Thread.of(send_message()),
            bert.id,
            opened_by=OpenedBy.PROGRAM,
            name="crm",
            reason="It is his.",
        )
    with committed():
        send_message()
    with committed():
        message = send_message(handled=False)
    require(37, message)
    assert Message.objects.get(in_reply_to=message).answered_by_id == bert.id
