"""Facts and recalled turns in the context of one prompt."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from memory.conf import FACT_FLOOR, NEAR_FACT_FLOOR, NEAR_FACTS
from memory.context import ContextManager, LongTermMemory, SessionStore, WorkingContextCompiler
from memory.conversations import short_term
from memory.exceptions import InvalidArgument
from memory.indexing import drain
from tenants.models import Tenant
from tests.memory.conftest import AGENT, USER

MANAGER = ContextManager(SessionStore(), LongTermMemory(), WorkingContextCompiler())


OTHER_AGENT = UUID(int=2)


def test_turns_of_the_window_are_not_recalled(
    tenant_a: Tenant, add_exchange: Callable[..., Any]
) -> None:
    add_exchange(tenant_a.id, "My sister Zoe moved to Lisbon.", "How nice for your sister Zoe!")
    drain(tenant_a.id)

    found = ContextManager().gather(
        tenant_a.id, "chat", "Where does my sister Zoe live?", agent_id=AGENT, user_id=USER
    )

    assert [turn["content"] for turn in found.session_messages] == [
        "My sister Zoe moved to Lisbon.",
        "How nice for your sister Zoe!",
    ]
    assert found.lines == []


def test_an_answer_without_its_question_is_recalled_because_the_prompt_omits_it(
    tenant_a: Tenant, add_exchange: Callable[..., Any]
) -> None:
    add_exchange(tenant_a.id, "Where is she?", "Your sister Zoe lives in Lisbon.")
    drain(tenant_a.id)
    *_, answer = short_term.get_recent_messages(tenant_a.id, AGENT, USER)

    found = ContextManager().gather(
        tenant_a.id,
        "chat",
        "Where does my sister Zoe live?",
        agent_id=AGENT,
        user_id=USER,
        session_messages=[answer],
    )

    recalled = [line.partition("] ")[2] for line in found.lines]
    assert "assistant: Your sister Zoe lives in Lisbon." in recalled


def test_prompt_contains_no_facts_of_other_users(tenant_a: Tenant) -> None:
    for content, scope in {
        "Tea for everybody.": {},
        "Tea for this agent.": {"agent_id": AGENT},
        "Tea for another agent.": {"agent_id": OTHER_AGENT},
        "Tea for this user.": {"user_id": USER},
        "Tea for another user.": {"user_id": "somebody else"},
    }.items():
        MANAGER.store_memory(tenant_a.id, content, **scope)
    manager = ContextManager()

    def owners_of_facts(**scope: Any) -> set[str]:
        context = manager.compile_working_context(tenant_a.id, "t", "tea", "", **scope)["context"]
        return {line.removeprefix("- Fact: Tea for ") for line in context.splitlines()}

    assert owners_of_facts() == {"everybody.", "this agent.", "another agent."}
    assert owners_of_facts(agent_id=AGENT) == {"everybody.", "this agent."}
    assert owners_of_facts(user_id=USER) == {
        "everybody.",
        "this agent.",
        "another agent.",
        "this user.",
    }
    assert owners_of_facts(agent_id=AGENT, user_id=USER) == {
        "everybody.",
        "this agent.",
        "this user.",
    }


def test_the_nearest_facts_need_less_than_the_others(tenant_a: Tenant) -> None:
    for content in ("Maria is allergic to walnuts.", *(f"Invoice {n} is due." for n in range(5))):
        MANAGER.store_memory(tenant_a.id, content)
    question = (tenant_a.id, "t", "Bake her a cake.")

    strict = ContextManager(fact_floor=FACT_FLOOR).gather(*question)
    found = ContextManager(fact_floor=FACT_FLOOR, near_fact_floor=NEAR_FACT_FLOOR).gather(*question)
    every = ContextManager(fact_floor=0.9, near_fact_floor=-1).gather(*question)

    assert strict.facts == []
    assert found.lines == ["- Fact: Maria is allergic to walnuts."]
    assert NEAR_FACT_FLOOR < found.facts[0].score < FACT_FLOOR
    assert len(found.below_floor) == 5
    assert (len(every.facts), len(every.below_floor)) == (NEAR_FACTS, 6 - NEAR_FACTS)
    with pytest.raises(InvalidArgument, match="near_fact_floor=2 is not a number"):
        ContextManager(near_fact_floor=2)


def test_turns_that_fit_are_not_recalled_and_those_that_do_not_are(
    tenant_a: Tenant, add_exchange: Callable[..., Any]
) -> None:
    add_exchange(tenant_a.id, "My sister Zoe moved to Lisbon.", "How nice for your sister Zoe!")
    add_exchange(tenant_a.id, "It rains in Porto. " * 500, "Take an umbrella. " * 500)
    drain(tenant_a.id)
    scope = {"agent_id": AGENT, "user_id": USER}
    question = (tenant_a.id, "chat", "Where does my sister Zoe live?")
    manager = ContextManager()

    large = manager.gather(*question, "reasoning", **scope)
    assert len(large.session_messages) == 4
    assert not any("Lisbon" in line for line in large.lines)
    small = manager.gather(*question, "fast", **scope)
    assert len(small.session_messages) == 4
    assert small.lines[0].endswith("user: My sister Zoe moved to Lisbon.")
    prompt = manager.fit(small, "You are kind.", "fast")
    assert not any("Lisbon" in turn["content"] for turn in prompt.fitted.messages)
    assert "Zoe moved to Lisbon" in prompt.messages[1]["content"]
