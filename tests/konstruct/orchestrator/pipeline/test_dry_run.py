"""Dry runs: the decisions of a channel, without stored rows."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.handoff import escalations
from konstruct.orchestrator.models import Agent, ModelCall
from konstruct.orchestrator.pipeline.dry_run import (
    HOLD_STEP,
    MAX_MESSAGES,
    DryReply,
    DryThread,
    dry_run,
)
from konstruct.orchestrator.tools import tool_calls
from memory.models import Message
from tests.konstruct.conftest import Program
from tests.konstruct.orchestrator.handoff.handing import FIRST, call, offered, words
from tests.servers.llm import Answer, LLMServer
from tests.stored import row_counts

METER = ("orchestrator_modelcall", "orchestrator_dailyusage")
Ask = Callable[..., DryReply]


@pytest.fixture
def ada(program: Program) -> Agent:
    return program.agent


@pytest.fixture
def bert(program: Program) -> Agent:
    return create_agent(tenant_id=program.tenant.id, name="bert")


@pytest.fixture
def ask(ada: Agent, bert: Agent) -> Iterator[Ask]:
    """Send messages to a dry run in turn. Check that no table has changed."""
    thread = DryThread()
    before: dict[str, int] = row_counts(without=METER)

    def send(*contents: str, user_id: str | None = "maria") -> DryReply:
        nonlocal thread
        for content in contents:
            reply = dry_run(thread, content, ada, user_id=user_id)
            # The caller stores it as JSON.
            thread = DryThread.from_dict(reply.thread.as_dict())
        return reply

    yield send
    assert row_counts(without=METER) == before


def test_a_request_for_a_person_is_decided_as_in_a_channel(ask: Ask, llm_server: LLMServer) -> None:
    exchange = ask("talk to a human").exchange
    assert exchange.reply == escalations.NOTICE
    assert exchange.steps == (
        "It would be handed to a person (the user asks for one). “talk to a human”",
    )
    held = ask("Are you there?").exchange
    assert (held.reply, held.steps) == ("", (HOLD_STEP,))
    assert llm_server.requests == []


def test_a_rule_of_the_draft_escalates(ask: Ask, ada: Agent) -> None:
    ada.escalate_on = ["refund"]  # not saved
    exchange = ask("I want a refund").exchange
    assert exchange.steps == (
        "It would be handed to a person (a rule). The message says 'refund'.",
    )


def test_the_prompt_has_the_turns_of_the_dry_run_and_the_window(
    ada: Agent, send_message: Callable[..., Message], llm_server: LLMServer
) -> None:
    send_message("My sister lives in Lisbon.")
    first = dry_run(DryThread(), "She likes tea.", ada, user_id="maria")
    dry_run(first.thread, "What does she like?", ada, user_id="maria")
    prompt = words(llm_server.requests[-1])
    assert [prompt.count(text) for text in ("Lisbon", "She likes tea.")] == [1, 1]
    dry_run(DryThread(), "Where does my sister live?", ada, user_id=None)
    assert "Lisbon" not in words(llm_server.requests[-1])


def test_calls_of_the_language_model_are_metered(ask: Ask, ada: Agent) -> None:
    ask("Hello")
    (metered,) = ModelCall.objects.all()
    assert (metered.agent_id, metered.purpose, metered.outcome) == (ada.pk, "dry run", "done")
    assert metered.prompt_tokens > 0


def test_a_tool_is_described_and_not_run(ask: Ask, ada: Agent, llm_server: LLMServer) -> None:
    ada.tools = ["remember_fact"]
    llm_server.answers = [call("remember_fact", fact="Maria likes tea.")]
    exchange = ask("Remember that I like tea.").exchange
    assert exchange.reply == ""
    (step,) = exchange.steps
    assert 'remember_fact with {"fact": "Maria likes tea."}' in step
    assert "May I remember this: “Maria likes tea.”?" in step
    assert offered(llm_server.requests[0]) == {"remember_fact"}
    agreed = ask("yes").exchange
    assert agreed.reply == tool_calls.CONSENT_GIVEN_REPLY
    assert "would run now. It is not run here." in agreed.steps[0]
    assert ask("yes").exchange.reply == "Noted."  # no message is waiting


def test_refused_tool_call_is_reported_to_the_language_model(
    ask: Ask, ada: Agent, llm_server: LLMServer
) -> None:
    ada.tools = ["remember_fact"]
    llm_server.answers = [call("remember_fact", fact=" ")]
    exchange = ask("Remember.").exchange
    assert exchange.reply == "Noted."
    assert "Refused: Error: fact=' ' is blank" in exchange.steps[0]
    assert "is blank" in words(llm_server.requests[1])


def test_a_rule_hands_over_and_back(
    ask: Ask, ada: Agent, bert: Agent, llm_server: LLMServer
) -> None:
    ada.hand_over_on = {"invoice": str(bert.pk)}
    Agent.objects.filter(pk=bert.pk).update(hand_back_on=["thanks"])
    exchange = ask("Where is my invoice?").exchange
    assert (exchange.agent_name, exchange.reply) == ("bert", f"{FIRST}\n\nNoted.")
    assert exchange.steps == (
        "ada would hand the conversation to bert. The message says 'invoice'.",
    )
    assert ask("And the other?").exchange.reply == "Noted."
    back = ask("thanks").exchange
    assert (back.agent_name, back.reply) == ("ada", "Noted.")
    assert back.steps == ("bert would hand the conversation back: bert has a rule for it.",)


def test_a_circle_of_agents_ends_at_a_person(ask: Ask, ada: Agent, bert: Agent) -> None:
    ada.hand_over_on = {"invoice": str(bert.pk)}
    Agent.objects.filter(pk=bert.pk).update(hand_over_on={"invoice": str(ada.pk)})
    exchange = ask("My invoice").exchange
    assert exchange.reply == escalations.NOTICE
    assert "ada had this conversation already" in exchange.steps[-1]


def test_a_language_model_hands_over(
    ask: Ask, ada: Agent, bert: Agent, llm_server: LLMServer
) -> None:
    ada.hands_to = [bert.pk]
    llm_server.answers = [call("hand_to_agent", agent="bert", reason="It is about money.")]
    exchange = ask("Where is my money?").exchange
    assert exchange.agent_name == "bert"
    assert exchange.steps == ("ada would hand the conversation to bert. It is about money.",)
    llm_server.answers = [call("hand_back")]
    assert ask("That is all.").exchange.agent_name == "ada"


@pytest.mark.parametrize("status", [400, 503])
def test_an_error_of_the_language_model_is_shown(
    ask: Ask, llm_server: LLMServer, status: int
) -> None:
    llm_server.default = Answer({"error": "secret detail"}, status=status)
    exchange = ask("Hello").exchange
    assert exchange.reply == ""
    assert exchange.problem
    assert "secret" not in exchange.problem
    assert {call.outcome for call in ModelCall.objects.all()} == {"failed"}


def test_an_answer_that_was_cut_is_marked(ask: Ask, llm_server: LLMServer) -> None:
    choice: dict[str, Any] = {"message": {"content": "Not"}, "finish_reason": "length"}
    llm_server.answers = [Answer({"choices": [choice]})]
    assert ask("Hello").exchange.steps == ("The answer was cut at the limit of tokens.",)


def test_a_dry_run_is_bounded(ask: Ask) -> None:
    assert ask(*["Hello"] * MAX_MESSAGES).thread.is_full
