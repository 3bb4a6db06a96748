"""The context of one prompt: what is in it, what is not, and that it fits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph

from memory.conf import FACT_FLOOR, NEAR_FACT_FLOOR, NEAR_FACTS
from memory.context import (
    ContextManager,
    LongTermMemory,
    MemoryEntry,
    SessionStore,
    WorkingContextCompiler,
)
from memory.context.exceptions import UnknownModelTier
from memory.conversations.short_term import append_message
from memory.exceptions import InvalidArgument
from memory.indexing.outbox import drain
from tenants.exceptions import TenantPinned, UnknownTenant
from tenants.models import Tenant
from tests.memory.conftest import AGENT, USER

MANAGER = ContextManager(SessionStore(), LongTermMemory(), WorkingContextCompiler())
OTHER_AGENT = UUID(int=2)


def save_session(tenant: Tenant, thread_id: str, *messages: Any) -> None:
    """A thread of a LangGraph graph that ended with these messages."""
    graph = (
        StateGraph(MessagesState)
        .add_node("end", lambda state: {"messages": []})
        .add_edge(START, "end")
        .compile(checkpointer=SessionStore(tenant.id).checkpointer)
    )
    graph.invoke({"messages": list(messages)}, {"configurable": {"thread_id": thread_id}})


@pytest.mark.django_db(transaction=True)
def test_the_context_is_the_session_and_what_memory_has_on_the_task(tenant_a: Tenant) -> None:
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
def test_tools_and_system_messages_of_a_graph_stay_out_of_the_prompt(tenant_a: Tenant) -> None:
    save_session(
        tenant_a,
        "thread",
        SystemMessage("Obey."),
        HumanMessage("Look it up"),
        AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}]),
        ToolMessage("found", tool_call_id="1"),
        AIMessage("It is a cat."),
    )

    compiled = MANAGER.compile_working_context(tenant_a.id, "thread", "Sure?", "")

    assert [(m["role"], m["content"]) for m in compiled["messages"]] == [
        ("user", "Look it up"),
        ("assistant", "It is a cat."),
    ]


@pytest.mark.django_db(transaction=True)
def test_a_thread_without_a_graph_has_the_window(tenant_a: Tenant) -> None:
    save_session(tenant_a, "graph", HumanMessage("From the graph"), AIMessage("Yes."))
    append_message(tenant_a.id, AGENT, USER, "user", "From the window")
    append_message(tenant_a.id, AGENT, USER, "assistant", "Indeed.")

    def said(thread_id: str, **scope: Any) -> list[str]:
        compiled = MANAGER.compile_working_context(tenant_a.id, thread_id, "So?", "", **scope)
        return [message["content"] for message in compiled["messages"]]

    assert said("chat", agent_id=AGENT, user_id=USER) == ["From the window", "Indeed."]
    assert said("graph", agent_id=AGENT, user_id=USER) == ["From the graph", "Yes."]
    assert said("chat") == []
    assert said("chat", agent_id=AGENT, user_id="somebody else") == []


def test_a_node_of_a_graph_hands_over_the_turns_that_it_has(tenant_a: Tenant) -> None:
    append_message(tenant_a.id, AGENT, USER, "user", "From the window")
    earlier = [HumanMessage("Hello"), AIMessage("Hi."), ToolMessage("x", tool_call_id="1")]

    compiled = MANAGER.compile_working_context(
        tenant_a.id, "t", "So?", "", agent_id=AGENT, user_id=USER, session_messages=earlier
    )

    assert [message["content"] for message in compiled["messages"]] == ["Hello", "Hi."]


@pytest.mark.django_db(transaction=True)
def test_a_task_that_the_graph_has_as_its_last_turn_is_not_said_twice(tenant_a: Tenant) -> None:
    save_session(tenant_a, "t", HumanMessage("So?"), AIMessage("Yes."), HumanMessage("So?"))

    compiled = MANAGER.compile_working_context(tenant_a.id, "t", "So?", "")

    assert [message["content"] for message in compiled["messages"]] == ["So?", "Yes."]
    assert compiled["task"] == "So?"


def test_a_manager_without_graphs_needs_no_session_store(tenant_a: Tenant) -> None:
    append_message(tenant_a.id, AGENT, USER, "user", "From the window")
    manager = ContextManager(None, LongTermMemory(), WorkingContextCompiler("fast"))

    compiled = manager.compile_working_context(
        tenant_a.id, "chat", "So?", "", "fast", agent_id=AGENT, user_id=USER
    )

    assert manager.session is None
    assert [message["content"] for message in compiled["messages"]] == ["From the window"]


def test_facts_stand_beside_recalled_turns_labelled_and_dated(
    tenant_a: Tenant, say: Callable[..., Any]
) -> None:
    said = say(tenant_a.id, "My sister Zoe moved to Lisbon last spring.", name="Ann")
    say(tenant_a.id, "I had soup for lunch today.", name="Ann")
    current = say(tenant_a.id, "Where does my sister Zoe live now?", name="Ann")
    drain(tenant_a.id)
    MANAGER.store_memory(tenant_a.id, "Zoe is Ann's sister.", agent_id=AGENT, user_id=USER)

    found = ContextManager().gather(
        tenant_a.id,
        "chat",
        "Where does my sister Zoe live now?",
        agent_id=AGENT,
        user_id=USER,
        exclude=[current.id],
    )

    assert found.lines[:2] == [
        "- Fact: Zoe is Ann's sister.",
        f"- [{said.created_at:%A, %Y-%m-%d %H:%M}] Ann: My sister Zoe moved to Lisbon last spring.",
    ]
    assert found.recalled is not None
    assert found.recalled.hits[0].message_id == said.id
    assert current.id not in {hit.message_id for hit in found.recalled.hits}
    assert [fact.content for fact in found.facts] == ["Zoe is Ann's sister."]


def test_what_the_window_shows_is_not_recalled_again(
    tenant_a: Tenant, talk: Callable[..., Any]
) -> None:
    talk(tenant_a.id, "My sister Zoe moved to Lisbon.", "How nice for your sister Zoe!")
    drain(tenant_a.id)

    found = ContextManager().gather(
        tenant_a.id, "chat", "Where does my sister Zoe live?", agent_id=AGENT, user_id=USER
    )

    assert [turn["content"] for turn in found.session_messages] == [
        "My sister Zoe moved to Lisbon.",
        "How nice for your sister Zoe!",
    ]
    assert found.lines == []


def test_a_prompt_tells_nobody_elses_facts(tenant_a: Tenant) -> None:
    for content, scope in {
        "Tea for everybody.": {},
        "Tea for this agent.": {"agent_id": AGENT},
        "Tea for another agent.": {"agent_id": OTHER_AGENT},
        "Tea for this user.": {"user_id": USER},
        "Tea for another user.": {"user_id": "somebody else"},
    }.items():
        MANAGER.store_memory(tenant_a.id, content, **scope)
    manager = ContextManager()

    def told(**scope: Any) -> set[str]:
        context = manager.compile_working_context(tenant_a.id, "t", "tea", "", **scope)["context"]
        return {line.removeprefix("- Fact: Tea for ") for line in context.splitlines()}

    assert told() == {"everybody.", "this agent.", "another agent."}
    assert told(agent_id=AGENT) == {"everybody.", "this agent."}
    assert told(user_id=USER) == {"everybody.", "this agent.", "another agent.", "this user."}
    assert told(agent_id=AGENT, user_id=USER) == {"everybody.", "this agent.", "this user."}


def test_at_most_ten_facts_are_searched_for(tenant_a: Tenant) -> None:
    for number in range(12):
        MANAGER.store_memory(tenant_a.id, f"Tea number {number} is good.")

    compiled = ContextManager().compile_working_context(tenant_a.id, "t", "tea", "")

    assert len(compiled["context"].splitlines()) == 10


def test_facts_below_the_floor_are_found_and_not_told(tenant_a: Tenant) -> None:
    for content in ("Ann likes green tea.", "The car is red."):
        MANAGER.store_memory(tenant_a.id, content)
    asked = (tenant_a.id, "t", "What does Ann drink?")

    found = ContextManager(fact_floor=FACT_FLOOR).gather(*asked)

    assert [fact.content for fact in found.facts] == ["Ann likes green tea."]
    assert [fact.content for fact in found.unlike] == ["The car is red."]
    assert found.facts[0].score > FACT_FLOOR > found.unlike[0].score
    assert found.lines == ["- Fact: Ann likes green tea."]
    assert len(ContextManager().gather(*asked).lines) == 2
    with pytest.raises(InvalidArgument, match="fact_floor=2 is not a number from -1 to 1"):
        ContextManager(fact_floor=2)


def test_the_nearest_facts_need_less_than_the_others(tenant_a: Tenant) -> None:
    for content in ("Maria is allergic to walnuts.", *(f"Invoice {n} is due." for n in range(5))):
        MANAGER.store_memory(tenant_a.id, content)
    asked = (tenant_a.id, "t", "Bake her a cake.")

    strict = ContextManager(fact_floor=FACT_FLOOR).gather(*asked)
    found = ContextManager(fact_floor=FACT_FLOOR, near_fact_floor=NEAR_FACT_FLOOR).gather(*asked)
    every = ContextManager(fact_floor=0.9, near_fact_floor=-1).gather(*asked)

    assert strict.facts == []
    assert found.lines == ["- Fact: Maria is allergic to walnuts."]
    assert NEAR_FACT_FLOOR < found.facts[0].score < FACT_FLOOR
    assert len(found.unlike) == 5
    assert (len(every.facts), len(every.unlike)) == (NEAR_FACTS, 6 - NEAR_FACTS)
    with pytest.raises(InvalidArgument, match="near_fact_floor=2 is not a number"):
        ContextManager(near_fact_floor=2)


def test_turns_that_fit_are_not_recalled_and_those_that_do_not_are(
    tenant_a: Tenant, talk: Callable[..., Any]
) -> None:
    talk(tenant_a.id, "My sister Zoe moved to Lisbon.", "How nice for your sister Zoe!")
    talk(tenant_a.id, "It rains in Porto. " * 500, "Take an umbrella. " * 500)
    drain(tenant_a.id)
    whose = {"agent_id": AGENT, "user_id": USER}
    asked = (tenant_a.id, "chat", "Where does my sister Zoe live?")
    manager = ContextManager()

    large = manager.gather(*asked, "reasoning", **whose)
    assert len(large.session_messages) == 4
    assert not any("Lisbon" in line for line in large.lines)
    small = manager.gather(*asked, "fast", **whose)
    assert len(small.session_messages) == 4
    assert small.lines[0].endswith("user: My sister Zoe moved to Lisbon.")
    prompt = manager.fit(small, "You are kind.", "fast")
    assert not any("Lisbon" in turn["content"] for turn in prompt.fitted.messages)
    assert "Zoe moved to Lisbon" in prompt.messages[1]["content"]


def test_a_prompt_knows_what_it_tells_and_what_it_left_out(
    tenant_a: Tenant, talk: Callable[..., Any]
) -> None:
    said = talk(tenant_a.id, "My sister Zoe moved to Lisbon. " * 300, "Lisbon, Zoe! " * 300)
    talk(tenant_a.id, *["It rains in Porto. " * 3000] * 2)
    drain(tenant_a.id)
    fact = MANAGER.store_memory(tenant_a.id, "Zoe is Ann's sister. " * 400)
    manager = ContextManager()

    found = manager.gather(
        tenant_a.id, "t", "Where does Zoe live?", "fast", agent_id=AGENT, user_id=USER
    )
    prompt = manager.fit(found, "", "fast")

    assert [memory.fact.memory_id for memory in prompt.told if memory.fact] == [fact]
    assert [memory.message_id for memory in prompt.told if memory.message_id] == []
    trace = prompt.trace()
    assert trace["hits"] == []
    assert {cut["message_id"]: cut["reason"] for cut in trace["cut"]}[said[0].message_id] == (
        "over the budget"
    )
    assert [(each["memory_id"], each["reason"]) for each in trace["facts"]] == [(str(fact), "")]
    assert trace["injected"] == prompt.fitted.memories


@pytest.mark.parametrize(("tier", "budget"), [("fast", 8000), ("reasoning", 32000)])
def test_the_tier_decides_the_budget_whatever_the_history(
    tenant_a: Tenant, tier: str, budget: int
) -> None:
    for number in range(20):
        append_message(tenant_a.id, AGENT, USER, ("user", "assistant")[number % 2], "word " * 3000)
    for number in range(2):
        MANAGER.store_memory(tenant_a.id, f"{number} " + "fact " * 6000)

    compiled = ContextManager().compile_working_context(
        tenant_a.id, "t", "task " * 9000, "system " * 9000, tier, agent_id=AGENT, user_id=USER
    )

    assert budget * 0.6 < compiled["token_usage"]["total"] <= budget
    for section, share in {"system": 0.15, "session": 0.35, "memory": 0.35, "task": 0.15}.items():
        assert 0 < compiled["token_usage"][section] <= budget * share
    with pytest.raises(UnknownModelTier):
        MANAGER.compile_working_context(tenant_a.id, "t", "task", "", "huge")


@dataclass
class Errand:
    description: str
    shop: str = "corner"


@pytest.mark.parametrize(
    "task",
    [{"description": "What does Ann like?", "shop": "corner"}, Errand("What does Ann like?")],
)
def test_a_task_is_searched_by_its_description_and_told_with_its_data(
    tenant_a: Tenant, task: Any
) -> None:
    MANAGER.store_memory(tenant_a.id, "Ann likes tea.")
    compiled = ContextManager().get_context(tenant_a.id, "t", task, "")
    assert compiled["task"] == "What does Ann like?\n\nData of the task:\n- shop: corner"
    assert compiled["context"] == "- Fact: Ann likes tea."


@pytest.mark.parametrize("task", ["", {}, {"shop": "corner"}, {"description": " ", "shop": "x"}])
def test_a_task_without_a_description_searches_nothing(tenant_a: Tenant, task: Any) -> None:
    MANAGER.store_memory(tenant_a.id, "Ann likes tea.", agent_id=AGENT)
    gathered = ContextManager().gather(tenant_a.id, "t", task, agent_id=AGENT, user_id=USER)
    assert (gathered.memories, gathered.recalled.abstained) == ([], True)


def test_a_task_that_is_none_is_refused(tenant_a: Tenant) -> None:
    manager = ContextManager()
    with pytest.raises(InvalidArgument, match="task=7 is neither text nor has a description"):
        manager.compile_working_context(tenant_a.id, "t", 7, "")
    with pytest.raises(InvalidArgument, match="holds a NUL character"):
        manager.compile_working_context(tenant_a.id, "t", {"note": "a\0"}, "")


def test_the_trace_lists_what_of_the_task_was_cut(tenant_a: Tenant) -> None:
    manager = ContextManager()
    task = {"description": "Grant it?", "deal_id": "D-17", "contract": "clause " * 9000}
    prompt = manager.fit(manager.gather(tenant_a.id, "t", task), "", "fast")
    section = prompt.trace()["prompt"]["sections"][-1]
    assert (section["name"], section["truncated"], section["cut"]) == ("task", True, ["contract"])
    assert "- deal_id: D-17" in section["messages"][0]["content"]


@pytest.mark.django_db(transaction=True)
def test_another_tenants_context_is_empty_and_its_store_is_refused(
    tenant_a: Tenant, tenant_b: Tenant, say: Callable[..., Any]
) -> None:
    save_session(tenant_a, "thread", HumanMessage("Our secret is tea"), AIMessage("Hush."))
    say(tenant_a.id, "Our secret is tea.")
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


def test_a_tenant_that_does_not_exist_has_no_context(tenant_a: Tenant) -> None:
    nobody = uuid4()

    compiled = ContextManager().compile_working_context(nobody, "t", "tea", "You are kind.")

    assert compiled["context"] == ""
    assert MANAGER.search_memory(nobody, "tea") == []
    with pytest.raises(UnknownTenant):
        MANAGER.store_memory(nobody, "tea")


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


def test_asynchronous_callers_have_the_same_methods(tenant_a: Tenant) -> None:
    manager = ContextManager()

    async def live() -> tuple[str, int]:
        await manager.astore_memory(tenant_a.id, "Ann likes tea.")
        compiled = await manager.acompile_working_context(tenant_a.id, "t", "tea", "")
        return compiled["context"], len(await manager.asearch_memory(tenant_a.id, "tea"))

    assert async_to_sync(live)() == ("- Fact: Ann likes tea.", 1)
