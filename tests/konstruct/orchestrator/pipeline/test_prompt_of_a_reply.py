"""The prompt of a reply: facts and memories in it, within the budget, stored as it was sent."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings, strategies as st

from konstruct.orchestrator import runner
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.pipeline import respond
from memory import indexing as embedding_outbox
from memory.conf import ERASED_PART
from memory.context import ContextManager, tokens
from memory.context.chat import TRANSPARENCY_CLAUSE
from memory.context.manager import empty_recall
from memory.context.prompt import PromptItem, PromptParts
from memory.context.working import MESSAGE_OVERHEAD_TOKENS, REPLY_OVERHEAD_TOKENS
from memory.facts import LongTermMemory
from memory.models import Message, RecallEvent
from tests.konstruct.conftest import Program, SendMessage
from tests.memory.recall_traces import trace_of
from tests.servers.llm import LLMServer

pytestmark = pytest.mark.slow

BUDGETS = {"fast": 8000, "reasoning": 32000}
REMEMBER = ContextManager().store_memory


@pytest.fixture
def ask(send_message: SendMessage, llm_server: LLMServer) -> Callable[..., list[dict[str, str]]]:
    """Answer a message of maria. Return the request to the language model."""

    def ask(content: str, *, thread_id: str = "now") -> Any:
        message = send_message(content, thread_id=thread_id, name="Maria")
        assert Message.objects.filter(in_reply_to=message).exists()
        return llm_server.requests[-1].body["messages"]

    return ask


def remembered(prompt: list[dict[str, str]]) -> list[str]:
    """Return the remembered items of the system message, without its first two lines."""
    return [
        line
        for message in prompt[1:2]
        if message["role"] == "system"
        for line in message["content"].splitlines()[2:]
    ]


def size(prompt: list[dict[str, str]]) -> int:
    """Return the tokens of the prompt in a chat format."""
    contents = [message["content"] for message in prompt]
    return (
        sum(tokens.count(content) + MESSAGE_OVERHEAD_TOKENS for content in contents)
        + REPLY_OVERHEAD_TOKENS
    )


def last_event() -> Any:
    return SimpleNamespace(**trace_of(RecallEvent.objects.order_by("-reply__number")[0]))


# --- Content --------------------------------------------------------------------------------------


def test_prompt_contains_only_facts_visible_to_the_agent_and_the_user(
    program: Program, ask: Callable[..., list[dict[str, str]]]
) -> None:
    scopes: dict[str, dict[str, Any]] = {
        "everybody": {},
        "this agent": {"agent_id": program.agent.id},
        "another agent": {"agent_id": UUID(int=1)},
        "this user": {"user_id": "maria"},
        "another user": {"user_id": "theo"},
    }
    for name, scope in scopes.items():
        REMEMBER(program.tenant.id, f"The beagle is called Rex by {name}.", **scope)
    hit = remembered(ask("What is the beagle called?"))
    assert {line.removeprefix("- Fact: The beagle is called Rex by ") for line in hit} == {
        "everybody.",
        "this agent.",
        "this user.",
    }


# --- The budget ---------------------------------------------------------------------------------


TEXT = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["", " \n", "<|endoftext|>", "\ud800", "\0", "👩‍👩‍👧‍👦" * 9, "\r\n \t" * 20, "!!!\n"]
    ),
    st.builds(lambda text, times: text * times, st.text(max_size=12), st.integers(0, 4000)),
)
TURN = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXT})


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    tier=st.sampled_from(sorted(BUDGETS)),
    system=TEXT,
    window=st.lists(TURN, max_size=20),
    memories=st.lists(TEXT, max_size=10),
    task=TEXT,
)
def test_no_input_makes_a_prompt_exceed_the_budget_or_lose_its_form(
    tier: str, system: str, window: list[dict[str, Any]], memories: list[str], task: str
) -> None:
    agent = Agent(name="ada", system_prompt=system, model_tier=tier)
    gathered = PromptParts(
        task=task,
        session_messages=window,
        memories=[PromptItem(f"- {text}") for text in memories],
        facts=[],
        below_floor=[],
        recalled=empty_recall(task),
    )
    prompt = respond.build_prompt(agent, gathered)
    messages = prompt.messages
    assert size(messages) <= BUDGETS[tier]
    assert TRANSPARENCY_CLAUSE in messages[0]["content"]
    roles = [message["role"] for message in messages]
    turns = roles[roles.index("user") :]
    assert roles[: -len(turns)] == ["system"] * (2 if memories else 1)
    assert turns == ["user", "assistant"] * (len(turns) // 2) + ["user"]
    assert messages[-1]["content"] or not task
    sections = prompt.trace()["prompt"]["sections"]
    assert [message for section in sections for message in section["messages"]] == messages
    assert all(section["tokens"] <= section["share"] for section in sections)


# --- Storage --------------------------------------------------------------------------------------


def test_prompt_is_stored_as_sent_with_the_tokens_of_each_section(
    program: Program, ask: Callable[..., list[dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.facts.service.SMALL_SET", 0)
    ask("Good morning.")
    fact = REMEMBER(program.tenant.id, "Maria's beagle is called Rex.", user_id="maria")
    car = REMEMBER(program.tenant.id, "Invoices are due within 30 days.", user_id="maria")
    prompt = ask("What is my beagle called?")
    embedding_outbox.drain(program.tenant.id)
    event = last_event()
    kept = event.prompt
    assert (kept["model_tier"], kept["budget"]) == ("fast", 8000)
    sections = {section["name"]: section for section in kept["sections"]}
    assert [*sections] == ["system", "memory", "session", "task"]
    assert [message for section in kept["sections"] for message in section["messages"]] == prompt
    assert [section["share"] for section in kept["sections"]] == [1200, 2800, 2800, 1200]
    assert [section["left_out"] for section in kept["sections"]] == [0, 0, 0, 0]
    assert not any(section["truncated"] for section in kept["sections"])
    assert sections["task"]["tokens"] == tokens.count("What is my beagle called?")
    assert sections["memory"]["tokens"] == tokens.count("- Fact: Maria's beagle is called Rex.")
    assert kept["tokens"] == sum(section["tokens"] for section in kept["sections"])
    assert event.injected == ["- Fact: Maria's beagle is called Rex."]
    included, left_out = event.facts
    assert included == {
        "memory_id": str(fact),
        "content": "Maria's beagle is called Rex.",
        "score": included["score"],
        "reason": "",
        "probability": None,
        "quote": "",
        "said_at": None,
        "message_ids": [],
    }
    assert (left_out["memory_id"], left_out["reason"]) == (str(car), "below the floor")
    assert 1 > included["score"] > 0.5 > 0.18 > left_out["score"]


def test_text_of_a_fact_that_is_deleted_during_the_reply_is_not_stored(
    program: Program, ask: Callable[..., list[dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.facts.service.SMALL_SET", 0)
    REMEMBER(program.tenant.id, "Maria's beagle is called Rex.", user_id="maria")
    car = REMEMBER(program.tenant.id, "Invoices are due within 30 days.", user_id="maria")
    run = runner.run_agent

    def run_after_a_deletion(*given: Any) -> str:
        assert LongTermMemory().delete(car, program.tenant.id)
        return run(*given)

    monkeypatch.setattr(runner, "run_agent", run_after_a_deletion)
    ask("What is my beagle called?")
    assert RecallEvent.objects.get().unmatched is None
    assert [fact["content"] for fact in last_event().facts] == [
        "Maria's beagle is called Rex.",
        ERASED_PART,
    ]


@pytest.mark.slow
def test_truncated_parts_are_stored_with_the_reason(
    program: Program, ask: Callable[..., list[dict[str, str]]]
) -> None:
    for number in range(4):
        ask(
            f"My beagle Rex, part {number}: " + f"he barked {number} times. " * 300, thread_id="old"
        )
    for number in range(10):
        ask(f"Small talk about the weather, part {number}.")
    embedding_outbox.drain(program.tenant.id)
    REMEMBER(program.tenant.id, "The beagle is called Rex. " * 400, user_id="maria")
    REMEMBER(program.tenant.id, "Rex is a beagle. " * 450, user_id="maria")
    prompt = ask("What is my beagle called?", thread_id="today")
    embedding_outbox.drain(program.tenant.id)
    event = last_event()
    memory = event.prompt["sections"][1]
    assert memory["messages"] == [prompt[1]]
    assert memory["left_out"] > 0
    assert len(event.injected) == 1
    assert event.hits == []
    over = [cut for cut in event.cut if cut["reason"] == "over the budget"]
    assert len(over) == memory["left_out"] - 1
    assert all(cut["score"] > 0 and cut["channels"] for cut in over)
    assert sorted(fact["reason"] for fact in event.facts) == ["", "over the budget"]


def test_truncated_text_is_marked(
    program: Program, ask: Callable[..., list[dict[str, str]]]
) -> None:
    Agent.objects.update(system_prompt="Be kind. " * 9000)
    ask("Why? " * 5000)
    embedding_outbox.drain(program.tenant.id)
    sections = {section["name"]: section for section in last_event().prompt["sections"]}
    assert {name: section["truncated"] for name, section in sections.items()} == {
        "system": True,
        "memory": False,
        "session": False,
        "task": True,
    }
    assert tokens.TRUNCATION_MARK in sections["task"]["messages"][0]["content"]
