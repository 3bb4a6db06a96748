"""The context of a prompt by REST: as in the pipeline, within the budget."""

from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.builder import build_system_prompt
from memory.context import tokens
from memory.context.working import MESSAGE_OVERHEAD_TOKENS, REPLY_OVERHEAD_TOKENS
from memory.conversations.short_term import append_message
from memory.models import Message
from tenants.context import tenant_scope
from tests.konstruct.api.resources.memory.facts.keeping import keep
from tests.konstruct.api.resources.memory.test_memories import remember
from tests.konstruct.api.seed_data import talk
from tests.konstruct.conftest import Program

COMPILE = "/api/v1/context/compile/"


def compiled(program: Program, task: Any = "What am I allergic to?", **fields: Any) -> Any:
    body = {"agent": program.agent.name, "user_id": "maria", "task": task, **fields}
    response = program.post(COMPILE, body)
    assert response.status_code == 200, response.content
    return response.json()


def texts_of(context: dict[str, Any]) -> list[str]:
    return [turn["content"] for turn in context["messages"]]


def test_a_context_is_facts_recalled_turns_and_the_window(program_a: Program) -> None:
    remember(program_a, "I am allergic to walnuts, so never order the cake.")
    fact = keep(program_a, "Maria is allergic to penicillin.", user_id="maria")
    keep(program_a, "The car is red.", user_id="maria")
    # More than the window holds, so that the imported turns have left it.
    for number in range(20):
        role = ("user", "assistant")[number % 2]
        append_message(program_a.tenant.id, program_a.agent.id, "maria", role, f"turn {number}")
    with tenant_scope(program_a.tenant.id):
        message = Message.objects.get()

    context = compiled(program_a)

    own, _, date = context["system_prompt"].rpartition("\n\n")
    assert own == build_system_prompt(program_a.agent)
    assert f"is {datetime.now(UTC):%A, %Y-%m-%d} " in date
    assert texts_of(context) == [f"turn {number}" for number in range(20)]
    assert context["context"].splitlines() == [
        "- Fact: Maria is allergic to penicillin.",
        "- [Saturday, 2026-03-14 09:00] user: I am allergic to walnuts, so never order the cake.",
    ]
    assert context["sources"] == [
        {"kind": "fact", "id": fact["memory_id"]},
        {"kind": "message", "id": str(message.id)},
    ]
    assert context["task"] == "What am I allergic to?"
    assert (context["model_tier"], context["budget"]) == ("fast", 8000)
    assert context["left_out"] == {"messages": 0, "memories": 0, "task": []}
    usage = context["token_usage"]
    assert usage["total"] == sum(usage[name] for name in ("system", "session", "memory", "task"))
    assert [turn["role"] for turn in context["prompt"]] == [
        "system",
        "system",
        *["user", "assistant"] * 10,
        "user",
    ]
    assert context["prompt"][1]["content"].startswith("Relevant context from past conversations:\n")
    assert context["prompt"][1]["content"].endswith(context["context"])
    assert context["prompt"][-1] == {"role": "user", "content": "What am I allergic to?"}


def test_task_with_data_searches_by_description_and_returns_all_data(program_a: Program) -> None:
    fact = keep(program_a, "Maria is allergic to penicillin.", user_id="maria")
    task = {"description": "What am I allergic to?", "ward": 7, "contract": "clause " * 4000}

    context = compiled(program_a, task)

    assert context["sources"] == [{"kind": "fact", "id": fact["memory_id"]}]
    assert context["task"].startswith(
        "What am I allergic to?\n\nData of the task:\n- ward: 7\n- contract: clause"
    )
    assert context["left_out"]["task"] == ["contract"]
    assert context["prompt"][-1] == {"role": "user", "content": context["task"]}


def test_a_program_may_bring_its_own_turns_prompt_and_tier(program_a: Program) -> None:
    append_message(program_a.tenant.id, program_a.agent.id, "maria", "user", "From the window")
    turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}]
    context = compiled(
        program_a, messages=turns, system_prompt="You are Bo.", model_tier="reasoning"
    )
    assert texts_of(context) == ["Hello", "Hi."]
    assert context["system_prompt"] == "You are Bo."
    assert (context["model_tier"], context["budget"]) == ("reasoning", 32000)
    assert texts_of(compiled(program_a, messages=[])) == []


@pytest.mark.slow
def test_no_prompt_is_over_its_budget(program_a: Program) -> None:
    turns = [
        {"role": ("user", "assistant")[number % 2], "content": f"{number} " + "слово 🦄 " * 900}
        for number in range(60)
    ]
    for number in range(4):
        keep(program_a, f"{number}: " + "Maria is allergic to 🥜. " * 1200)
    for tier, budget in (("fast", 8000), ("reasoning", 32000)):
        context = compiled(
            program_a,
            "Who is allergic? " * 1900,
            messages=turns,
            system_prompt="Be kind. " * 3600,
            model_tier=tier,
        )
        size = REPLY_OVERHEAD_TOKENS + sum(
            tokens.count(turn["content"]) + MESSAGE_OVERHEAD_TOKENS for turn in context["prompt"]
        )
        assert budget * 0.7 < size <= budget
        assert context["left_out"]["messages"] > 0
        assert context["prompt"][-1]["content"].startswith("Who is allergic? Who is")


@pytest.mark.django_db(transaction=True)
def test_a_graphs_thread_is_the_session(program_a: Program, program_b: Program) -> None:
    talk(program_a, "thread", HumanMessage("From the graph"), AIMessage("Yes."))
    append_message(program_a.tenant.id, program_a.agent.id, "maria", "user", "From the window")
    assert texts_of(compiled(program_a, thread_id="thread")) == ["From the graph", "Yes."]
    assert texts_of(compiled(program_a, thread_id="unknown")) == ["From the window"]
    assert texts_of(compiled(program_b, thread_id="thread")) == []


def test_agents_and_users_of_one_tenant_are_separate(program_a: Program) -> None:
    create_agent(tenant_id=program_a.tenant.id, name="bo")
    remember(program_a, "I am allergic to walnuts, so never order the cake.")
    keep(program_a, "Maria is allergic to penicillin.", user_id="maria")
    append_message(program_a.tenant.id, program_a.agent.id, "maria", "user", "Our secret")
    for fields in ({"agent": "bo"}, {"user_id": "theo"}):
        context = compiled(program_a, **fields)
        assert (context["context"], context["messages"]) == ("", [])


def test_key_of_an_agent_compiles_for_that_agent_and_key_of_a_user_is_refused(
    program_a: Program,
) -> None:
    """A user's key could read the agent's prompt, and facts about other users."""
    create_agent(tenant_id=program_a.tenant.id, name="bo")
    keep(program_a, "Maria is allergic to penicillin.", user_id="maria")

    def ask(binding: dict[str, Any], **fields: Any) -> Any:
        bound = program_a.with_key(**binding)
        body = {"agent": "ada", "user_id": "maria", "task": "Who is allergic?", **fields}
        return bound.post(COMPILE, body)

    of_ada = {"agent_id": program_a.agent.id}
    assert ask(of_ada).json()["context"] == "- Fact: Maria is allergic to penicillin."
    assert ask(of_ada, agent="bo").status_code == 422
    assert ask(of_ada, thread_id="thread").status_code == 403
    for binding in ({"user_id": "maria"}, {**of_ada, "user_id": "maria"}):
        for fields in ({}, {"system_prompt": ""}, {"user_id": "theo"}):
            refused = ask(binding, **fields)
            assert refused.status_code == 403
            assert b"penicillin" not in refused.content
