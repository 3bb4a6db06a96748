"""The cost of a message: SQL statements, and files that a reader has to open."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

import pytest
from django.test.utils import CaptureQueriesContext

import konstruct
from konstruct.orchestrator import pipeline
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.handoff import escalations, handovers
from konstruct.orchestrator.handoff.escalations import OpenedBy, Thread
from konstruct.orchestrator.models import Agent, PendingReply
from konstruct.orchestrator.tools import tool_calls
from memory.embedding.embedder import get_embedder
from memory.models import Message
from tenants.context import connection
from tests.konstruct.conftest import Program
from tests.servers.llm import Answer, LLMServer

SendMessage = Callable[..., Message]
# Runs functions of on_commit, as a transaction of the product does.
Committed = Callable[[], AbstractContextManager[Any]]

ROOT = Path(konstruct.__file__).parent.parent
PACKAGES = ("konstruct", "memory", "tenants")
# The driver of every statement, and pure functions of one value: they do not count.
UNCOUNTED = ("tenants/postgresql/", "tenants/redis_keys.py", "memory/arguments.py")
MAX_FILES, MAX_RETURNS = 18, 3


@pytest.fixture(autouse=True)
def _model() -> None:
    """Load the embedding model first: a turn with a thread ends after MAX_THREAD_SECONDS."""
    get_embedder()


@pytest.fixture
def committed(django_capture_on_commit_callbacks: Any) -> Committed:
    return lambda: django_capture_on_commit_callbacks(execute=True)


def statements_of(message: Message) -> list[str]:
    """Return the statements of a worker for the message. Savepoints are not counted."""
    with CaptureQueriesContext(connection) as queries:
        pipeline.handle(tenant_id=message.tenant_id, message_id=message.id)
    uncounted = ("SAVEPOINT", "RELEASE", "ROLLBACK TO")
    statements = [query["sql"] for query in queries]
    return [statement for statement in statements if not statement.startswith(uncounted)]


def require(budget: int, message: Message) -> None:
    statements = statements_of(message)
    assert len(statements) == budget, "\n".join(statement[:200] for statement in statements)


# --- Statements -----------------------------------------------------------------------------------


def test_a_plain_reply(send_message: SendMessage, committed: Committed) -> None:
    """The first message of a user and a thread reads tables that later ones find in the cache."""
    with committed():
        first = send_message(handled=False)
    require(23, first)
    with committed():
        second = send_message(handled=False)
    require(19, second)
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
    require(16, message)
    (call,) = tool_calls.calls_awaiting_consent(message.id)
    with committed():
        tool_calls.decide(message.tenant_id, call.id, True, by="maria")
    require(29, message)
    assert not PendingReply.objects.exists()


def test_a_held_thread(send_message: SendMessage, committed: Committed) -> None:
    with committed():
        thread = Thread.of(send_message())
        escalations.open_escalation(thread, opened_by=OpenedBy.PROGRAM, reason="It is urgent.")
    with committed():
        first = send_message(handled=False)
    require(11, first)
    with committed():
        second = send_message(handled=False)
    require(10, second)
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
    require(29, message)
    assert Message.objects.get(in_reply_to=message).answered_by_id == bert.id


# --- Files ----------------------------------------------------------------------------------------


def carries(value: Any, message_id: UUID, depth: int = 0) -> bool:
    """Return whether the value is the message's id, or the message, or contains one of them."""
    if isinstance(value, (UUID, str)):
        return str(value) == str(message_id)
    if depth > 2:
        return False
    if isinstance(value, (list, tuple, set, dict)):
        inside = list(value.values() if isinstance(value, dict) else value)
        return any(carries(value, message_id, depth + 1) for value in inside[:30])
    slots = {name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())}
    names = {"id", "message_id", "message"} & (slots | getattr(value, "__dict__", {}).keys())
    return any(carries(getattr(value, name, None), message_id, depth + 1) for name in names)


@contextmanager
def stops_of(message_id: UUID) -> Iterator[list[str]]:
    """Collect the files whose functions get the message, one entry each time."""
    stops: list[str] = []

    def on_call(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<"):
            return
        path = Path(code.co_filename)
        if not path.is_relative_to(ROOT):
            return
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(PACKAGES) or name.startswith(UNCOUNTED):
            return
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2]
        values = [frame.f_locals[argument] for argument in arguments if argument in frame.f_locals]
        if any(carries(value, message_id) for value in values) and stops[-1:] != [name]:
            stops.append(name)

    sys.setprofile(on_call)
    try:
        yield stops
    finally:
        sys.setprofile(None)


@pytest.mark.slow
def test_a_reader_opens_few_files_and_seldom_returns(
    send_message: SendMessage, committed: Committed
) -> None:
    with committed():
        send_message()
        message = send_message(handled=False)
    with stops_of(message.id) as stops:
        pipeline.handle(tenant_id=message.tenant_id, message_id=message.id)
    visits = Counter(stops)
    assert stops[0] == "konstruct/orchestrator/pipeline/worker.py"
    assert len(visits) <= MAX_FILES, stops
    assert max(visits.values()) - 1 <= MAX_RETURNS, stops
