"""Sessions of LangGraph graphs: they survive restarts and are isolated by tenant."""

import asyncio
import math
from datetime import timedelta
from enum import StrEnum
from typing import Any

import pytest
from django.utils import timezone
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, MessagesState, StateGraph

from memory.context import SessionStore
from memory.context.checkpoints import StrictSerializer
from memory.exceptions import InvalidArgument, NoTenant
from tenants.context import tenant_scope
from tenants.exceptions import KonstructError, TenantPinned
from tenants.models import Tenant
from tests.konstruct.running import run_python

# LangGraph has its own connections, which do not see uncommitted rows of a test.
pytestmark = pytest.mark.django_db(transaction=True)


def echo(state: MessagesState) -> dict[str, Any]:
    """An agent that repeats the message, and reports the number of turns."""
    content = state["messages"][-1].content
    return {"messages": [AIMessage(f"{content}, after {len(state['messages'])}")]}


def graph_of(store: SessionStore) -> Any:
    return (
        StateGraph(MessagesState)
        .add_node("echo", echo)
        .add_edge(START, "echo")
        .add_edge("echo", END)
        .compile(checkpointer=store.checkpointer)
    )


def invoke(store: SessionStore, text: str, thread_id: str = "thread") -> None:
    graph_of(store).invoke(
        {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread_id}}
    )


def messages_of(
    store: SessionStore, thread_id: str = "thread", limit: int = 50
) -> list[tuple[str, str]]:
    return [
        (message["role"], message["content"])
        for message in store.get_session_messages(thread_id, limit)
    ]


@pytest.mark.slow
def test_graph_continues_in_another_process(
    tenant_a: Tenant, process_environment: dict[str, str]
) -> None:
    other_process = f"""
import django
django.setup()
from tests.memory.context.test_session import invoke
from memory.context import SessionStore
invoke(SessionStore({str(tenant_a.id)!r}), "Hello")
"""
    run_python("-c", other_process, env={**process_environment, "PYTHONPATH": "."}, check=True)
    store = SessionStore(tenant_a.id)

    invoke(store, "Again")

    assert messages_of(store) == [
        ("user", "Hello"),
        ("assistant", "Hello, after 1"),
        ("user", "Again"),
        ("assistant", "Again, after 3"),
    ]
    assert messages_of(store, limit=2) == [("user", "Again"), ("assistant", "Again, after 3")]


def test_an_asynchronous_graph_shares_its_threads_with_a_synchronous_one(tenant_a: Tenant) -> None:
    store = SessionStore(tenant_a.id)

    async def converse(text: str) -> list[dict[str, Any]]:
        await graph_of(store).ainvoke(
            {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "thread"}}
        )
        return await store.aget_session_messages("thread")

    asyncio.run(converse("Hello"))
    invoke(store, "Again")
    messages = asyncio.run(converse("And again"))

    assert [message["content"] for message in messages] == [
        "Hello", "Hello, after 1", "Again", "Again, after 3", "And again", "And again, after 5",
    ]  # fmt: skip


def test_pruning_keeps_the_messages(tenant_a: Tenant) -> None:
    store = SessionStore(tenant_a.id)
    invoke(store, "Hello")
    invoke(store, "Again")
    before = messages_of(store)

    store.checkpointer.prune(["thread"])

    assert store.list_sessions()[0].checkpoints == 1
    assert messages_of(store) == before
    invoke(store, "Still here")
    assert messages_of(store)[4:] == [("user", "Still here"), ("assistant", "Still here, after 5")]


def test_a_store_without_a_tenant_follows_its_caller(tenant_a: Tenant, tenant_b: Tenant) -> None:
    store = SessionStore()
    with tenant_scope(tenant_a.id):
        invoke(store, "Hello")
        graph = graph_of(store)
    with tenant_scope(tenant_b.id):
        assert messages_of(store) == []
    # A compiled graph stays in the tenant of its creation.
    graph.invoke({"messages": [HumanMessage("Hi")]}, {"configurable": {"thread_id": "thread"}})
    assert len(messages_of(SessionStore(tenant_a.id))) == 4
    with pytest.raises(NoTenant, match=r"use SessionStore\(tenant_id\)"):
        store.get_session_messages("thread")


def test_session_of_another_tenant_cannot_be_opened(tenant_a: Tenant, tenant_b: Tenant) -> None:
    invoke(SessionStore(tenant_b.id), "Theirs")

    with tenant_scope(tenant_a.id):
        assert SessionStore(tenant_a.id).list_sessions() == []
        with pytest.raises(TenantPinned):
            SessionStore(tenant_b.id).get_session_messages("thread")
        with pytest.raises(TenantPinned):
            SessionStore(tenant_b.id).clear_session("thread")

    assert len(messages_of(SessionStore(tenant_b.id))) == 2


def test_a_graph_without_messages_has_a_session_without_messages(tenant_a: Tenant) -> None:
    graph = (
        StateGraph(dict[str, Any])
        .add_node("count", lambda state: {"count": 1})
        .add_edge(START, "count")
        .compile(checkpointer=SessionStore(tenant_a.id).checkpointer)
    )
    graph.invoke({"count": 0}, {"configurable": {"thread_id": "thread"}})

    assert SessionStore(tenant_a.id).get_session_messages("thread") == []


@pytest.mark.parametrize(
    ("thread_id", "limit", "message"),
    [
        ("", 50, "thread_id='' is empty"),
        ("a\x00b", 50, "holds U.0000"),
        ("thread", 0, "limit=0 is not a whole number of at least 1"),
    ],
)
def test_bad_arguments_are_named(
    tenant_a: Tenant, thread_id: str, limit: int, message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        SessionStore(tenant_a.id).get_session_messages(thread_id, limit)


def test_setup_may_be_called_as_langgraphs_users_are_used_to(tenant_a: Tenant) -> None:
    SessionStore(tenant_a.id).setup()
    SessionStore(tenant_a.id).checkpointer.setup()


def test_a_list_of_sessions_is_right_from_either_side_and_by_an_index(tenant_a: Tenant) -> None:
    store = SessionStore(tenant_a.id)
    for number in range(5):
        invoke(store, "Hello", f"thread-{number}")
    invoke(store, "Again", "thread-2")
    everything = store.list_sessions()

    assert [session.thread_id for session in everything] == [f"thread-{n}" for n in (2, 4, 3, 1, 0)]
    assert [session.checkpoints for session in everything] == [6, 3, 3, 3, 3]
    assert timezone.now() - everything[0].updated_at < timedelta(minutes=5)
    assert store.list_sessions(2, before=everything[1]) == everything[2:4]
    assert store.list_sessions(2, after=everything[3]) == everything[1:3][::-1]
    assert store.get_session("thread-2") == everything[0]
    assert store.get_session("nobody's") is None


def test_clearing_removes_one_complete_session(tenant_a: Tenant) -> None:
    store = SessionStore(tenant_a.id)
    invoke(store, "Hello")
    invoke(store, "Hello", "other")

    store.clear_session("thread")
    store.clear_session("thread")

    assert messages_of(store) == []
    assert [session.thread_id for session in store.list_sessions()] == ["other"]
    invoke(store, "A new start")
    assert messages_of(store)[0] == ("user", "A new start")


class Colour(StrEnum):
    """An enumeration of text."""

    RED = "red"


@pytest.mark.parametrize(
    ("thread_id", "metadata", "value", "error"),
    [
        ("", {}, "a", "thread_id='' is empty"),
        ("a\nb", {}, "a", r"U\+000A \(a control character\) at 1"),
        ("..", {}, "a", "use another id"),
        ("t", {"score": math.nan}, "a", r"metadata\['score'\] holds nan"),
        ("t", {"note": ["a\0"]}, "a", r"metadata\['note'\]\[0\]=.* holds U\+0000"),
        ("t", {"note": "\ud800"}, "a", "half of a surrogate pair"),
        ("t", {}, "a\0", r"the channel 'x'=.* holds U\+0000"),
        ("t", {}, math.inf, "the channel 'x' holds inf"),
        ("t", {}, Colour.RED, "the channel 'x' holds <Colour.RED"),
    ],
)
def test_what_could_not_be_read_again_is_refused(
    tenant_a: Tenant, thread_id: str, metadata: dict[str, Any], value: Any, error: str
) -> None:
    store = SessionStore(tenant_a.id)
    config = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    checkpoint = {**empty_checkpoint(), "channel_values": {"x": value}}
    with pytest.raises(KonstructError, match=error):
        store.checkpointer.put(config, checkpoint, metadata, {"x": "1"})
    assert store.list_sessions() == []


def test_a_nested_enumeration_keeps_its_type() -> None:
    serializer = StrictSerializer([Colour])
    assert serializer.loads_typed(serializer.dumps_typed([Colour.RED])) == [Colour.RED]
