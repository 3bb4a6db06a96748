"""The context of one prompt: its content, exclusions, and the budget."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph

from memory.context import (
    ContextManager,
    LongTermMemory,
    MemoryEntry,
    SessionStore,
    WorkingContextCompiler,
)
from memory.context.chat import date_prefix
from memory.context.manager import is_follow_up
from memory.context.prompt import PromptParts
from memory.conversations.short_term import append_message
from memory.indexing import drain
from tenants.exceptions import TenantPinned
from tenants.models import Tenant
from tests.memory.conftest import AGENT, USER

MANAGER = ContextManager(SessionStore(), LongTermMemory(), WorkingContextCompiler())


OTHER_AGENT = UUID(int=2)


def save_session(tenant: Tenant, thread_id: str, *messages: Any) -> None:
    """Save a thread of a LangGraph graph that ended with these messages."""
    graph = (
        StateGraph(MessagesState)
        .add_node("end", lambda state: {"messages": []})
        .add_edge(START, "end")
        .compile(checkpointer=SessionStore(tenant.id).checkpointer)
    )
    graph.invoke({"messages": list(messages)}, {"configurable": {"thread_id": thread_id}})


@pytest.mark.django_db(transaction=True)
def test_context_is_the_session_and_memories_of_the_task(tenant_a: Tenant) -> None:
    save_session(tenant_a, "thread", HumanMessage("Hello"), AIMessage("Hi, Ann."))
    MANAGER.store_memory(tenant_a.id, "Ann likes green tea.", agent_id=AGENT)

    compiled = MANAGER.compile_working_context(
        tenant_a.id, "thread", "What does Ann drink?", "You are kind."
    )

    assert compiled["system_prompt"] == "You are kind."
    assert [(m["role"], m["content"]) for m in compiled["messages"]] == [
        ("user", "Hello"),
        ("assistant", "Hi, Ann."),
    ]
    assert compiled["context"] == "- Fact: Ann likes green tea."
    assert compiled["task"] == "What does Ann drink?"
    assert compiled["token_usage"]["total"] == sum(
        compiled["token_usage"][section] for section in ("system", "session", "memory", "task")
    )


@pytest.mark.django_db(transaction=True)
def test_a_thread_without_a_graph_has_the_window(tenant_a: Tenant) -> None:
    save_session(tenant_a, "graph", HumanMessage("From the graph"), AIMessage("Yes."))
    append_message(tenant_a.id, AGENT, USER, "user", "From the window")
    append_message(tenant_a.id, AGENT, USER, "assistant", "Indeed.")

    def compiled_contents(thread_id: str, **scope: Any) -> list[str]:
        compiled = MANAGER.compile_working_context(tenant_a.id, thread_id, "So?", "", **scope)
        return [message["content"] for message in compiled["messages"]]

    assert compiled_contents("chat", agent_id=AGENT, user_id=USER) == ["From the window", "Indeed."]
    assert compiled_contents("graph", agent_id=AGENT, user_id=USER) == ["From the graph", "Yes."]
    assert compiled_contents("chat") == []
    assert compiled_contents("chat", agent_id=AGENT, user_id="somebody else") == []


def test_a_node_of_a_graph_hands_over_its_turns_without_tools_and_system_messages(
    tenant_a: Tenant,
) -> None:
    append_message(tenant_a.id, AGENT, USER, "user", "From the window")
    call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}])
    earlier = [SystemMessage("Obey."), HumanMessage("Hello"), AIMessage("Hi.")]
    earlier += [call, ToolMessage("x", tool_call_id="1")]

    compiled = MANAGER.compile_working_context(
        tenant_a.id, "t", "So?", "", agent_id=AGENT, user_id=USER, session_messages=earlier
    )

    assert [message["content"] for message in compiled["messages"]] == ["Hello", "Hi."]


def test_turns_before_a_pause_are_memories_with_their_day(tenant_a: Tenant) -> None:
    now = datetime.now(UTC)

    def gather(*hours_ago: int, task: str = "Why?") -> PromptParts:
        turns = [
            {
                "role": role,
                "content": f"{role} {hours}",
                "at": (now - timedelta(hours=hours)).isoformat(),
            }
            for hours in hours_ago
            for role in ("user", "assistant")
        ]
        return MANAGER.gather(
            tenant_a.id, "t", task, agent_id=AGENT, user_id=USER, session_messages=turns,
            pause=timedelta(hours=12),
        )  # fmt: skip

    parts = gather(30, 13)
    assert parts.session_messages == []
    said = date_prefix(now - timedelta(hours=13))
    assert parts.lines == [
        f"- Last conversation: user: {said} user 13",
        "- Last conversation: assistant: assistant 13",
    ]
    # Only a follow-up refers to them.
    assert gather(30, 13, task="Where does my brother live?").lines == []
    parts = gather(30, 10, 1)
    assert [turn["content"] for turn in parts.session_messages] == [
        "user 10", "assistant 10", "user 1", "assistant 1",
    ]  # fmt: skip
    assert parts.lines == []
    # A follow-up is searched with the turn before.
    query = gather(3, 2, 1, task="How much of it per day?").recalled.query
    assert query == "user 3 user 2 user 1 How much of it per day?"
    for whole in ("Where does Bob live?", "犬の名前は何ですか？", "Köpeğimin adı ne?"):
        assert gather(1, task=whole).recalled.query == whole
    for part in ("なぜですか？", "А в Берлине?", "And the price?", "Please go on"):
        assert gather(1, task=part).recalled.query == f"user 1 {part}"
    # The turns before show the language of a short message.
    assert is_follow_up("¿Y en Madrid?", ["¿Dónde vive Ana en la ciudad de Berlín?"])


def test_small_sets_of_facts_and_preferences_are_given_always(tenant_a: Tenant) -> None:
    def given() -> list[str]:
        parts = MANAGER.gather(
            tenant_a.id, "t", "Hello", agent_id=AGENT, user_id=USER, pause=timedelta(hours=12)
        )
        return [fact.content for fact in parts.facts]

    def store(content: str, slot: str) -> None:
        entry = MemoryEntry(
            tenant_id=tenant_a.id, agent_id=AGENT, user_id=USER, content=content, slot=slot
        )
        MANAGER.memory.store(entry)

    store("Ann eats no nuts.", "food_allergy")
    store("Ann's car is red.", "car")
    assert sorted(given()) == ["Ann eats no nuts.", "Ann's car is red."]
    for number in range(8):
        store(f"Ann's friend number {number} likes chess.", "friend")
    (always,) = MANAGER.memory.always_given(tenant_a.id, AGENT, USER)
    assert always.content == "Ann eats no nuts."
    assert always.content in given()


def test_prompt_lists_included_and_omitted_parts(
    tenant_a: Tenant, add_exchange: Callable[..., Any]
) -> None:
    exchange = add_exchange(
        tenant_a.id, "My sister Zoe moved to Lisbon. " * 300, "Lisbon, Zoe! " * 300
    )
    add_exchange(tenant_a.id, *["It rains in Porto. " * 3000] * 2)
    drain(tenant_a.id)
    fact = MANAGER.store_memory(tenant_a.id, "Zoe is Ann's sister. " * 400)
    manager = ContextManager()

    found = manager.gather(
        tenant_a.id, "t", "Where does Zoe live?", "fast", agent_id=AGENT, user_id=USER
    )
    prompt = manager.fit(found, "", "fast")

    assert [memory.fact.memory_id for memory in prompt.included if memory.fact] == [fact]
    assert [memory.message_id for memory in prompt.included if memory.message_id] == []
    trace = prompt.trace()
    assert trace["hits"] == []
    assert {cut["message_id"]: cut["reason"] for cut in trace["cut"]}[exchange[0].message_id] == (
        "over the budget"
    )
    assert [(fact["memory_id"], fact["reason"]) for fact in trace["facts"]] == [(str(fact), "")]
    assert trace["injected"] == prompt.fitted.memories


@dataclass
class Errand:
    description: str
    shop: str = "corner"


@pytest.mark.parametrize(
    "task",
    [{"description": "What does Ann like?", "shop": "corner"}, Errand("What does Ann like?")],
)
def test_task_is_searched_by_its_description_and_included_with_its_data(
    tenant_a: Tenant, task: Any
) -> None:
    MANAGER.store_memory(tenant_a.id, "Ann likes tea.")
    compiled = ContextManager().get_context(tenant_a.id, "t", task, "")
    assert compiled["task"] == "What does Ann like?\n\nData of the task:\n- shop: corner"
    assert compiled["context"] == "- Fact: Ann likes tea."


@pytest.mark.parametrize("task", ["", {}, {"shop": "corner"}, {"description": " ", "shop": "x"}])
def test_task_without_a_description_searches_nothing(tenant_a: Tenant, task: Any) -> None:
    MANAGER.store_memory(tenant_a.id, "Ann likes tea.", agent_id=AGENT)
    gathered = ContextManager().gather(tenant_a.id, "t", task, agent_id=AGENT, user_id=USER)
    assert (gathered.memories, gathered.recalled.abstained) == ([], True)


@pytest.mark.django_db(transaction=True)
def test_another_tenants_context_is_empty_and_its_store_is_refused(
    tenant_a: Tenant, tenant_b: Tenant, add_message: Callable[..., Any]
) -> None:
    save_session(tenant_a, "thread", HumanMessage("Our secret is tea"), AIMessage("Hush."))
    add_message(tenant_a.id, "Our secret is tea.")
    append_message(tenant_a.id, AGENT, USER, "user", "Our secret is tea.")
    drain(tenant_a.id)
    MANAGER.store_memory(tenant_a.id, "The secret is tea.", agent_id=AGENT, user_id=USER)

    compiled = MANAGER.compile_working_context(
        tenant_b.id, "thread", "What is the secret?", "", agent_id=AGENT, user_id=USER
    )

    assert compiled["messages"] == []
    assert compiled["context"] == ""
    assert MANAGER.search_memory(tenant_b.id, "secret") == []
    bound = ContextManager(SessionStore(tenant_a.id), LongTermMemory(), WorkingContextCompiler())
    with pytest.raises(TenantPinned):
        bound.compile_working_context(tenant_b.id, "thread", "What is the secret?", "")
    assert len(bound.compile_working_context(tenant_a.id, "thread", "?", "")["messages"]) == 2


def test_memory_is_stored_and_searched_through_the_manager(tenant_a: Tenant) -> None:
    memory_id = MANAGER.store_memory(
        tenant_a.id, "Ann likes tea.", agent_id=AGENT, metadata={"topic": "food"}
    )
    MANAGER.store_memory(tenant_a.id, "The office opens at nine.")

    (found,) = MANAGER.search_memory(tenant_a.id, "tea", filters={"topic": "food"})
    assert isinstance(found, MemoryEntry)
    assert (found.memory_id, found.agent_id) == (memory_id, AGENT)
    assert len(MANAGER.search_memory(tenant_a.id, "tea", limit=1)) == 1
    assert len(MANAGER.search_memory(tenant_a.id, "tea", agent_id=OTHER_AGENT)) == 1
