"""The cost of a message: SQL statements, and files that a reader has to open."""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

import pytest
from django.test.utils import CaptureQueriesContext

import konstruct
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.handoff import escalations, handovers
from konstruct.orchestrator.handoff.escalations import OpenedBy, Thread
from konstruct.orchestrator.models import Agent, PendingReply
from konstruct.orchestrator.replies.queue import REPLIES
from konstruct.orchestrator.tasks import answer_message
from konstruct.orchestrator.tools import tool_calls
from memory.embedding.embedder import get_embedder
from memory.models import ConversationEmbedding, Message
from memory.tasks import embed_and_store
from tenants import jobs
from tenants.context import connection, tenant_scope
from tests.konstruct.conftest import Program
from tests.servers.llm import Answer, LLMServer

SendMessage = Callable[..., Message]
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
    require(24, first)
    with committed():
        second = send_message(handled=False)
    require(23, second)
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
    require(36, message)
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
    require(34, message)
    assert Message.objects.get(in_reply_to=message).answered_by_id == bert.id


# --- Files ----------------------------------------------------------------------------------------

ROOT = Path(konstruct.__file__).parent.parent
PACKAGES = ("konstruct/", "memory/", "tenants/")
# The database wrapper of each statement, and pure functions of one value, do not count.
UNCOUNTED = ("tenants/postgresql/", "tenants/redis_keys.py", "memory/arguments.py")
# A call through a context manager or a decorator is a call by the code that uses it.
TRANSPARENT = {contextlib.__file__, functools.__file__}
MAX_FILES = 29


def ids_in(value: Any, depth: int = 0) -> set[str]:
    """Return the ids that a value is, or contains."""
    if isinstance(value, (UUID, str)):
        return {str(value)}
    if depth > 2:
        return set()
    if isinstance(value, (list, tuple, set, dict)):
        parts = list(value.values() if isinstance(value, dict) else value)[:30]
    else:
        slots = {name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())}
        names = {"id", "message_id", "message"} & (slots | getattr(value, "__dict__", {}).keys())
        parts = [getattr(value, name, None) for name in names]
    return {found for part in parts for found in ids_in(part, depth + 1)}


def file_of(frame: FrameType | None) -> str:
    """Return the path of a frame's file in the product; "" for other code."""
    path = "" if frame is None else frame.f_code.co_filename.removeprefix(f"{ROOT}/")
    return path if path.startswith(PACKAGES) else ""


@contextmanager
def calls() -> Iterator[list[tuple[str, set[str]]]]:
    """Collect the files of functions that other functions of the product call, with their ids."""
    collected: list[tuple[str, set[str]]] = []

    def on_call(frame: FrameType, event: str, _: object) -> None:
        name, code, caller = file_of(frame), frame.f_code, frame.f_back
        if event != "call" or not name or name.startswith(UNCOUNTED) or code.co_name[0] == "<":
            return
        while caller and (
            caller.f_code.co_filename in TRANSPARENT or caller.f_code.co_name[0] == "<"
        ):
            caller = caller.f_back
        if file_of(caller) or code.co_name in ("handle", "embed_and_store"):
            arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2]
            values = [frame.f_locals[name] for name in arguments if name in frame.f_locals]
            collected.append((name, ids_in(values)))

    sys.setprofile(on_call)
    try:
        yield collected
    finally:
        sys.setprofile(None)


@pytest.mark.slow
def test_a_message_passes_few_files_from_the_view_to_its_vector(
    program_a: Program, llm_server: LLMServer, committed: Committed, settings: Any
) -> None:
    settings.LLM_POOL_URL = llm_server.url
    program_a.send("Hello")
    jobs.work(REPLIES)
    with calls() as collected:
        with committed():
            message_id = program_a.send("Hello again").json()["id"]
            jobs.work(REPLIES)
        embed_and_store(str(program_a.tenant.id), [message_id])
    with tenant_scope(program_a.tenant.id):
        assert ConversationEmbedding.objects.filter(message_id=message_id).exists()
    files = {name for name, ids in collected if message_id in ids}
    assert len(files) <= MAX_FILES, "\n".join(sorted(files))
