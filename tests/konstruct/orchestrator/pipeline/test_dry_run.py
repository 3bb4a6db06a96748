"""Dry runs: the decisions of a channel, without stored rows."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.dry_runs import DryRun, dry_run
from konstruct.orchestrator.handoff import escalations
from konstruct.orchestrator.models import Agent
from memory.models import Message
from tests.konstruct.conftest import Program, SendMessage
from tests.konstruct.orchestrator.handoff.conftest import FIRST, call, offered, words
from tests.servers.llm import Answer, LLMServer
from tests.stored import row_counts

METER = ("orchestrator_modelcall", "orchestrator_dailyusage")
Ask = Callable[..., DryRun]


@pytest.fixture
def ada(program: Program) -> Agent:
    return program.agent


@pytest.fixture
def bert(program: Program) -> Agent:
    return create_agent(tenant_id=program.tenant.id, name="bert")


@pytest.fixture
def ask(ada: Agent, bert: Agent) -> Iterator[Ask]:
    """Send a message in a dry run. Check that no table has changed."""
    before: dict[str, int] = row_counts(without=METER)
    yield lambda content, user_id="maria": dry_run(ada, content, user_id=user_id)
    assert row_counts(without=METER) == before


def test_a_request_for_a_person_is_decided_as_in_a_channel(ask: Ask, llm_server: LLMServer) -> None:
    run = ask("talk to a human")
    assert run.reply == escalations.NOTICE
    assert run.steps == [
        "It would be handed to a person (the user asks for one). “talk to a human”",
    ]
    assert llm_server.requests == []


def test_the_prompt_has_the_window_of_the_person_without_left_out_messages(
    ada: Agent, send_message: SendMessage, llm_server: LLMServer
) -> None:
    message = send_message("My sister lives in Lisbon.")
    run = dry_run(ada, "Where does my sister live?", user_id="maria")
    assert "Lisbon" in words(llm_server.requests[-1])
    assert (run.agent, run.reply, run.problem) == (ada, "Noted.", "")
    assert run.trace is not None
    reply = Message.objects.get(in_reply_to=message)
    without = [message.pk, reply.pk]
    dry_run(ada, "Where does my sister live?", user_id="maria", without=without)
    assert "Lisbon" not in words(llm_server.requests[-1])
    dry_run(ada, "Where does my sister live?", user_id=None)
    assert "Lisbon" not in words(llm_server.requests[-1])


def test_a_tool_is_described_and_not_run(ask: Ask, ada: Agent, llm_server: LLMServer) -> None:
    ada.tools = ["remember_fact"]
    llm_server.answers = [
        call("remember_fact", fact="Maria likes tea."), call("remember_fact", fact=" "),
    ]  # fmt: skip
    run = ask("Remember that I like tea.")
    assert run.reply == ""
    (step,) = run.steps
    assert 'remember_fact with {"fact": "Maria likes tea."}. It is not run' in step
    assert "May I remember this: “Maria likes tea.”?" in step
    assert offered(llm_server.requests[0]) == {"remember_fact"}
    assert "Error: fact=' ' is blank" in ask("Remember.").steps[0]


def test_a_rule_hands_over(ask: Ask, ada: Agent, bert: Agent, llm_server: LLMServer) -> None:
    ada.hand_over_on = {"invoice": str(bert.pk)}
    run = ask("Where is my invoice?")
    assert (run.agent.name, run.reply) == ("bert", f"{FIRST}\n\nNoted.")
    assert run.steps == ["ada would hand the conversation to bert. The message says 'invoice'."]


def test_a_circle_of_agents_ends_at_a_person(ask: Ask, ada: Agent, bert: Agent) -> None:
    ada.hand_over_on = {"invoice": str(bert.pk)}
    Agent.objects.filter(pk=bert.pk).update(hand_over_on={"invoice": str(ada.pk)})
    run = ask("My invoice")
    assert run.reply == escalations.NOTICE
    assert "ada had this conversation already" in run.steps[-1]


def test_a_language_model_hands_over(
    ask: Ask, ada: Agent, bert: Agent, llm_server: LLMServer
) -> None:
    ada.hands_to = [bert.pk]
    llm_server.answers = [call("hand_to_agent", agent="bert", reason="It is about money.")]
    run = ask("Where is my money?")
    assert (run.agent.name, run.reply) == ("bert", f"{FIRST}\n\nNoted.")
    assert run.steps == ["ada would hand the conversation to bert. It is about money."]


def test_an_answer_that_was_cut_is_marked(ask: Ask, llm_server: LLMServer) -> None:
    choice: dict[str, Any] = {"message": {"content": "Not"}, "finish_reason": "length"}
    llm_server.answers = [Answer({"choices": [choice]})]
    assert ask("Hello").steps == ["The answer was cut at the limit of tokens."]
