"""Threads in which a person answers: opened in every way, without losses, ended by a person."""

from typing import Any

import pytest
from django_redis import get_redis_connection

from konstruct.consistency import CHECKS, HELD_WITHOUT_QUESTION, LOST, count, find
from konstruct.orchestrator import replies
from konstruct.orchestrator.exceptions import EscalationOver
from konstruct.orchestrator.handoff import escalations
from konstruct.orchestrator.handoff.escalations import NOTICE, OpenedBy, Thread
from konstruct.orchestrator.messages import KonstructMessage
from konstruct.orchestrator.models import Agent, Escalation, HeldFor, PendingReply
from konstruct.orchestrator.pipeline import respond
from konstruct.orchestrator.replies import Status, sent_messages, with_status
from memory.conversations.short_term import get_recent_messages
from memory.models import Message
from tests.jobs import claimable
from tests.konstruct.conftest import Program, SendMessage
from tests.konstruct.orchestrator.conftest import handle, reply, status
from tests.servers.llm import Answer, LLMServer


def open_escalation() -> Escalation:
    return Escalation.objects.open().get()


def test_request_for_a_person_is_confirmed_once_and_silences_the_agent(
    send_message: SendMessage, llm_server: LLMServer
) -> None:
    message, later = send_message("Can I talk to a human, please?"), send_message("Are you there?")
    elsewhere = send_message("Hello", thread_id="t2")
    assert (reply(message), reply(later), reply(elsewhere)) == (NOTICE, None, "Noted.")
    assert (status(message), status(later)) == (Status.ANSWERED, Status.WITH_PERSON)
    assert list(with_status(sent_messages(), Status.WITH_PERSON)) == [later]
    assert list(with_status(sent_messages(), Status.QUEUED)) == []
    assert len(llm_server.requests) == 1
    escalation = open_escalation()
    assert (escalation.opened_by, escalation.message_id) == (OpenedBy.USER, message.id)
    assert escalation.reason == "“Can I talk to a human, please?”"
    assert count()["held"] == 1
    assert find(LOST, HELD_WITHOUT_QUESTION) == []
    assert claimable(replies.REPLIES) == []


def test_flushed_cache_and_restarted_worker_change_nothing(
    send_message: SendMessage, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(respond, "record_reply", killed)
        with pytest.raises(KeyboardInterrupt):
            send_message("talk to a human")
    get_redis_connection("default").flushdb()
    message = Message.objects.get(content="talk to a human")
    handle(message)
    assert (reply(message), Escalation.objects.count()) == (NOTICE, 1)
    get_redis_connection("default").flushdb()
    assert status(send_message("Hello?")) is Status.WITH_PERSON
    assert llm_server.requests == []


def test_a_phrase_of_the_agents_calls_for_a_person(
    send_message: SendMessage, program: Program
) -> None:
    Agent.objects.update(escalate_on=["legal action"])
    assert reply(send_message("I will take LEGAL action!")) == NOTICE
    escalation = open_escalation()
    assert (escalation.opened_by, escalation.reason) == (
        OpenedBy.RULE,
        "The message says 'legal action'.",
    )


def test_consecutive_failed_replies_open_an_escalation(
    send_message: SendMessage, llm_server: LLMServer
) -> None:
    Agent.objects.update(escalate_after_failures=2)
    llm_server.default = Answer("no", 400)
    first, second = send_message("One"), send_message("Two")
    assert (status(first), reply(second)) == (Status.FAILED, NOTICE)
    assert open_escalation().opened_by == OpenedBy.RULE
    assert "(HTTP 400)" in open_escalation().reason


def test_waiting_replies_are_held_when_a_program_escalates_and_the_channel_is_notified(
    send_message: SendMessage,
    program: Program,
    monkeypatch: pytest.MonkeyPatch,
    llm_server: LLMServer,
) -> None:
    contents = []

    class Hook:
        def on_change(self, message: Any) -> None:
            contents.append(message.content)

        def on_partial_reply(self, message: Any) -> None:
            pass

    monkeypatch.setattr(replies, "_hooks", {"rest": Hook()})
    waiting = send_message("Hello", handled=False)
    thread = Thread.of(waiting)
    escalation, is_new = escalations.open_escalation(
        thread, opened_by=OpenedBy.PROGRAM, name="crm", reason="VIP"
    )
    again, is_new_again = escalations.open_escalation(
        thread, opened_by=OpenedBy.PROGRAM, name="crm", reason="Other"
    )
    assert (is_new, is_new_again, again.pk) == (True, False, escalation.pk)
    handle(waiting)
    assert (status(waiting), llm_server.requests) == (Status.WITH_PERSON, [])
    assert contents == ["Hello"]
    escalations.resolve(escalation.pk, by="eva", let_agent_answer=True)
    assert contents == ["Hello", "Hello"]
    handle(waiting)
    assert (reply(waiting), contents) == ("Noted.", ["Hello"] * 3)


def test_reply_in_progress_is_discarded_after_an_escalation(
    send_message: SendMessage, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = send_message("Hello", handled=False)
    ask = respond.ask_language_model

    def meanwhile(*arguments: Any) -> Any:
        draft = ask(*arguments)
        escalations.open_escalation(
            Thread.of(message), opened_by=OpenedBy.PERSON, name="eva", reason="Mine."
        )
        return draft

    monkeypatch.setattr(respond, "ask_language_model", meanwhile)
    handle(message)
    assert (reply(message), status(message)) == (None, Status.WITH_PERSON)


def test_a_message_that_meets_the_end_of_an_escalation_is_not_held_for_ever(
    send_message: SendMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_message("talk to a human")
    message = send_message("Hello", handled=False)
    hold_for_person = escalations.hold_for_person

    def just_before(message: KonstructMessage) -> bool:
        escalations.resolve(open_escalation().pk, by="eva", let_agent_answer=True)
        return hold_for_person(message)

    monkeypatch.setattr(escalations, "hold_for_person", just_before)
    handle(message)
    assert reply(message) == "Noted."
    held = send_message("Held by mistake.", handled=False)
    replies.REPLIES.hold(held.id, HeldFor.PERSON)
    (finding,) = find(HELD_WITHOUT_QUESTION)
    assert finding.subject == str(held.id)
    next(check for check in CHECKS if check.kind == finding.kind).repair([finding.subject])
    handle(held)
    assert reply(held) == "Noted."


def test_answer_of_a_person_is_remembered_as_a_reply(
    send_message: SendMessage, program: Program
) -> None:
    send_message("talk to a human")
    first, second = send_message("My order is lost."), send_message("Number 17.")
    turn = escalations.answer_as_person(open_escalation().pk, "I found it.", name="Eva")
    assert (turn.in_reply_to, turn.role, turn.name) == (second, "assistant", "Eva")
    assert (status(second), status(first)) == (Status.ANSWERED, Status.CLOSED)
    assert list(with_status(sent_messages(), Status.CLOSED)) == [first]
    assert list(with_status(sent_messages(), Status.FAILED)) == []
    closed = PendingReply.objects.get(pk=first.pk)
    assert closed.last_error == "Answered by Eva together with a later message."
    own = escalations.answer_as_person(open_escalation().pk, "It comes tomorrow.", name="Eva")
    assert own.in_reply_to is None
    turns = [
        turn["content"]
        for turn in get_recent_messages(program.tenant.id, program.agent.id, "maria")
    ]
    assert turns == ["talk to a human", NOTICE, "Number 17.", "I found it.", "It comes tomorrow."]
    get_redis_connection("default").flushdb()
    again = get_recent_messages(program.tenant.id, program.agent.id, "maria")
    assert [turn["content"] for turn in again] == turns
    escalations.resolve(open_escalation().pk, by="eva", let_agent_answer=True, note="Found.")
    assert reply(send_message("Thanks")) == "Noted."
    assert find(LOST, HELD_WITHOUT_QUESTION) == []


def test_resolving_as_handled_closes_waiting_messages_with_a_reason(
    send_message: SendMessage,
) -> None:
    send_message("talk to a human")
    waiting = send_message("Hello?")
    escalation = escalations.resolve(open_escalation().pk, by="eva", let_agent_answer=False)
    pending = PendingReply.objects.get(pk=waiting.pk)
    assert (pending.held_for, pending.last_error) == (
        HeldFor.NOT_HELD,
        "Taken care of by a person: eva.",
    )
    assert find(LOST, HELD_WITHOUT_QUESTION) == []
    with pytest.raises(EscalationOver, match="resolved by eva"):
        escalations.resolve(escalation.pk, by="bob", let_agent_answer=True)
    with pytest.raises(EscalationOver):
        escalations.answer_as_person(escalation.pk, "Hi", name="Bob")
