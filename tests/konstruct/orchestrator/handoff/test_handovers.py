"""Threads that another agent answers: handed over in every way, without losses."""

from typing import Any

import pytest
from django_redis import get_redis_connection

from konstruct.orchestrator import exceptions
from konstruct.orchestrator.handoff import escalations, handovers
from konstruct.orchestrator.handoff.escalations import OpenedBy, Outcome, Thread
from konstruct.orchestrator.models import Agent, Escalation, ToolCall
from konstruct.orchestrator.pipeline import respond
from memory.context.chat import date_prefix
from memory.conversations.short_term import get_recent_messages
from memory.models import Message
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program, SendMessage
from tests.konstruct.orchestrator.conftest import handle
from tests.konstruct.orchestrator.handoff.conftest import (
    FIRST,
    answer_to,
    call,
    hand,
    offered,
    reply,
    words,
)
from tests.servers.llm import Answer, LLMServer


def test_new_agent_answers_the_thread_and_introduces_itself(
    send_message: SendMessage, bert: Agent, llm_server: LLMServer, program: Program
) -> None:
    before = send_message("My sister lives in Lisbon.")
    handover = hand(before, bert)
    first, second = send_message("Where is my invoice?"), send_message("And the other?")
    elsewhere, another = (
        send_message("Hello", thread_id="t2"),
        send_message("Hello", user_id="otto"),
    )
    assert answer_to(first) == ("bert", f"{FIRST}\n\nNoted.")
    assert answer_to(second) == ("bert", "Noted.")
    assert answer_to(elsewhere) == answer_to(another) == ("ada", "Noted.")
    for message in (first, second):
        answered = reply(message)
        assert answered is not None
        assert (message.agent_id, answered.agent_id) == (program.agent.id, program.agent.id)
        assert answered.answered_by_id == bert.id
    request = llm_server.requests[1]
    assert request.body["messages"][0]["content"].startswith("You are Bert.")
    assert "You are Ada" not in words(request)
    assert request.body["messages"][1:] == [
        {"role": "user", "content": f"{date_prefix(before.created_at)} My sister lives in Lisbon."},
        {"role": "assistant", "content": "ada: Noted."},
        {"role": "user", "content": "Where is my invoice?"},
    ]
    assert (handover.opened_by, handover.to_agent_id) == (OpenedBy.PROGRAM, bert.id)


def test_a_phrase_hands_over_and_the_message_is_answered_by_the_other(
    send_message: SendMessage, bert: Agent
) -> None:
    Agent.objects.filter(name="ada").update(hand_over_on={"invoice": str(bert.id)})
    message = send_message("Where is my INVOICE?")
    assert answer_to(message) == ("bert", f"{FIRST}\n\nNoted.")
    handover = Escalation.objects.open().get()
    assert (handover.opened_by, handover.message_id) == (OpenedBy.RULE, message.id)
    assert handover.reason == "The message says 'invoice'."
    Agent.objects.filter(name="bert").update(hand_back_on=["library"])
    assert answer_to(send_message("Now about the library.")) == ("ada", "Noted.")
    handover.refresh_from_db()
    assert (handover.outcome, handover.resolved_by) == (Outcome.HANDED_BACK, "bert")
    assert not Escalation.objects.open().exists()


def test_language_model_hands_over_and_back_without_calls_of_the_first_agent(
    send_message: SendMessage, bert: Agent, llm_server: LLMServer
) -> None:
    Agent.objects.filter(name="ada").update(hands_to=[bert.id])
    llm_server.answers = [
        call("hand_to_agent", agent="bert", reason="SECRET of Ada"),
        Answer({"content": "Your invoice is paid."}),
        call("hand_back"),
        Answer({"content": "Ada again."}),
    ]
    message, later = send_message("Where is my invoice?"), send_message("Thanks. And my book?")
    assert answer_to(message) == ("bert", f"{FIRST}\n\nYour invoice is paid.")
    assert answer_to(later) == ("ada", "Ada again.")
    first, second, third, fourth = llm_server.requests
    assert offered(first) == {"hand_to_agent"}
    assert offered(second) == offered(third) == {"hand_back"}
    assert offered(fourth) == {"hand_to_agent"}
    assert "SECRET" not in words(second) + words(third)
    assert "bert: " not in words(fourth)  # its turns are in Ada's own window, without a name
    rows = ToolCall.objects.order_by("created_at").values_list("name", "state", "result")
    assert list(rows) == [
        ("hand_to_agent", "done", "Handed to bert."),
        ("hand_back", "done", "Handed back."),
    ]
    assert ToolCall.objects.get(name="hand_back").asked_by_id == bert.id


@pytest.mark.parametrize("wanted", ["zoe", "ada", "carl", "", None, ["bert"], 7])
def test_agent_hands_over_only_to_allowed_agents(
    wanted: Any, send_message: SendMessage, bert: Agent, carl: Agent, llm_server: LLMServer
) -> None:
    Agent.objects.filter(name="ada").update(hands_to=[bert.id])
    llm_server.answers = [call("hand_to_agent", agent=wanted)]
    assert answer_to(send_message()) == ("ada", "Noted.")
    result = llm_server.requests[1].body["messages"][-1]
    assert result["role"] == "tool"
    assert result["content"].startswith("Error: there is no agent")
    assert not Escalation.objects.exists()


def test_reply_in_progress_is_restarted_by_the_new_agent(
    send_message: SendMessage, bert: Agent, monkeypatch: pytest.MonkeyPatch, llm_server: LLMServer
) -> None:
    message = send_message("Hello", handled=False)
    ask, calls = respond.ask_language_model, []

    def meanwhile(*arguments: Any) -> Any:
        draft = ask(*arguments)
        if not calls:
            calls.append(hand(message, bert))
        return draft

    monkeypatch.setattr(respond, "ask_language_model", meanwhile)
    handle(message)
    assert answer_to(message) == ("bert", f"{FIRST}\n\nNoted.")
    assert len(llm_server.requests) == 2


@pytest.mark.parametrize("step", ["record_reply", "append_to_window", "finish", "append_copies"])
def test_restarted_worker_sends_each_reply_once_after_a_kill(
    step: str,
    send_message: SendMessage,
    bert: Agent,
    monkeypatch: pytest.MonkeyPatch,
    program: Program,
) -> None:
    Agent.objects.filter(name="ada").update(hand_over_on={"invoice": str(bert.id)})

    def killed(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(respond, step, killed)
        with pytest.raises(KeyboardInterrupt):
            send_message("My invoice!")
    get_redis_connection("default").flushdb()
    message = Message.objects.get(content="My invoice!", agent_id=program.agent.id)
    handle(message)
    assert answer_to(message) == ("bert", f"{FIRST}\n\nNoted.")
    assert Escalation.objects.count() == 1
    assert Message.objects.filter(agent_id=bert.id).count() == 2
    send_message("More")
    window = get_recent_messages(program.tenant.id, bert.id, "maria")
    assert [turn["content"] for turn in window] == [
        "My invoice!", f"{FIRST}\n\nNoted.", "More", "Noted.",
    ]  # fmt: skip


def test_invalid_handover_is_refused_and_changes_nothing(
    send_message: SendMessage, bert: Agent, program: Program, tenant_b: Any, make_program: Any
) -> None:
    message = send_message()
    other = make_program(tenant_b)
    with tenant_scope(program.tenant.id):
        with pytest.raises(exceptions.AgentNotFound):
            hand(message, other.agent)
        with pytest.raises(exceptions.NothingToHandOver):
            hand(message, program.agent)
        with pytest.raises(exceptions.NothingToEscalate):
            handovers.hand_over(
                Thread(program.agent.id, "nobody", "t1"), bert.id,
                opened_by=OpenedBy.PROGRAM, name="crm", reason="x",
            )  # fmt: skip
        Agent.objects.filter(name="bert").update(is_active=False)
        with pytest.raises(exceptions.AgentNotFound):
            hand(message, bert)
        assert not Escalation.objects.exists()
        Agent.objects.filter(name="bert").update(is_active=True)
        handover = hand(message, bert)
        assert handovers.hand_over(
            Thread.of(message), bert.id, opened_by=OpenedBy.PERSON, name="eva", reason="Again."
        ) == (handover, False)
        with pytest.raises(exceptions.WrongState):
            escalations.answer_as_person(handover.pk, "Hello", name="eva")
