"""Handovers that lead nowhere end at a person: circles, and agents that are gone."""

from uuid import uuid4

import pytest
from django_redis import get_redis_connection

from konstruct.orchestrator.handoff import escalations, handovers
from konstruct.orchestrator.handoff.escalations import (
    NOTICE,
    Answering,
    OpenedBy,
    Outcome,
    Thread,
    who_answers,
)
from konstruct.orchestrator.models import Agent, Escalation
from konstruct.orchestrator.replies.status import Status, progress_of, sent_messages
from tests.konstruct.conftest import Program
from tests.konstruct.orchestrator.handoff.handing import FIRST, Say, call, hand, reply, said, work
from tests.servers.llm import Answer, LLMServer


def test_a_circle_of_rules_ends_at_a_person(say: Say, bert: Agent, carl: Agent) -> None:
    ids = {agent.name: str(agent.id) for agent in Agent.objects.all()}
    for name, to in (("ada", "bert"), ("bert", "carl"), ("carl", "ada")):
        Agent.objects.filter(name=name).update(hand_over_on={"invoice": ids[to]})
    message = say("My invoice!")
    assert said(message) == ("ada", NOTICE)
    hops = Escalation.objects.to_agents().order_by("opened_at")
    assert [(str(hop.to_agent_id), hop.outcome) for hop in hops] == [
        (ids["bert"], Outcome.HANDED_ON),
        (ids["carl"], Outcome.TO_PERSON),
    ]
    person = Escalation.objects.open().get()
    assert person.to_agent_id is None
    assert "ada had this conversation already" in person.reason
    held = say("Hello?")
    assert (said(held), progress_of(sent_messages().get(pk=held.pk)).status) == (
        None,
        Status.WITH_PERSON,
    )
    # Once a person has had the thread, the agents begin anew.
    escalations.resolve(person.pk, by="eva", let_agent_answer=True)
    work(held)
    assert said(held) == ("ada", "Noted.")


def test_a_circle_of_language_models_ends_at_a_person(
    say: Say, bert: Agent, program: Program, llm_server: LLMServer
) -> None:
    Agent.objects.filter(name="ada").update(hands_to=[bert.id])
    Agent.objects.filter(name="bert").update(hands_to=[program.agent.id])
    llm_server.answers = [
        call("hand_to_agent", agent="bert"),
        call("hand_to_agent", agent="ada"),
    ]
    assert said(say("Hm.")) == ("ada", NOTICE)
    assert Escalation.objects.open().get().to_agent_id is None
    assert len(llm_server.requests) == 2


def test_handing_out_and_back_for_ever_ends_at_a_person_too(
    say: Say, bert: Agent, llm_server: LLMServer
) -> None:
    Agent.objects.filter(name="ada").update(hands_to=[bert.id])
    llm_server.answers = [
        answer
        for _ in range(20)
        for answer in (call("hand_to_agent", agent="bert"), call("hand_back"))
    ]
    assert said(say("Hm.")) == ("ada", NOTICE)
    assert len(llm_server.requests) == 3
    assert "bert had this conversation already" in Escalation.objects.open().get().reason


def test_handing_back_skips_inactive_agents(say: Say, bert: Agent, carl: Agent) -> None:
    message = say()
    thread = Thread.of(message)
    hand(message, bert)
    hand(message, carl)
    assert handovers.hand_back(thread, carl)
    standing = who_answers(thread)
    assert standing == Answering(agent_id=bert.id)
    hand(message, carl)
    Agent.objects.filter(name="bert").update(is_active=False)
    assert handovers.hand_back(thread, carl)
    assert who_answers(thread) is None
    assert not handovers.hand_back(thread, carl)


@pytest.mark.parametrize("gone", ["inactive", "deleted"])
def test_thread_of_a_deleted_agent_opens_an_escalation(gone: str, say: Say, bert: Agent) -> None:
    message = say()
    if gone == "inactive":
        hand(message, bert)
        Agent.objects.filter(name="bert").update(is_active=False)
    else:  # as if the owner had removed it
        Escalation.objects.create(
            **Thread.of(message).named, channel="rest", to_agent_id=uuid4(),
            opened_by=OpenedBy.PERSON, reason="Gone.",
        )  # fmt: skip
        get_redis_connection("default").flushdb()
    assert said(say("Hello?")) == ("ada", NOTICE)
    assert Escalation.objects.open().get().to_agent_id is None


def test_rule_for_a_deleted_agent_opens_an_escalation(say: Say, bert: Agent) -> None:
    Agent.objects.filter(name="ada").update(hand_over_on={"invoice": str(bert.id)})
    Agent.objects.filter(name="bert").update(is_active=False)
    assert said(say("My invoice!")) == ("ada", NOTICE)


def test_request_for_a_person_opens_an_escalation_for_every_agent(say: Say, bert: Agent) -> None:
    Agent.objects.filter(name="bert").update(escalate_on=["lawyer"])
    hand(say(thread_id="t2"), bert)
    assert said(say("I call my lawyer", thread_id="t2")) == ("ada", NOTICE)
    handover = hand(say(), bert)
    assert said(say("Can I talk to a human, please?")) == ("ada", NOTICE)
    handover.refresh_from_db()
    assert handover.outcome == Outcome.TO_PERSON
    person = Escalation.objects.open().get(thread_id="t1")
    held = say("Anybody?")
    # A person hands the thread on: what waited for them is answered.
    hand(held, bert, OpenedBy.PERSON)
    work(held)
    assert said(held) == ("bert", f"{FIRST}\n\nNoted.")
    person.refresh_from_db()
    assert person.outcome == Outcome.HANDED_ON


def test_failed_replies_of_the_current_agent_count(
    say: Say, bert: Agent, llm_server: LLMServer
) -> None:
    hand(say(), bert)
    Agent.objects.filter(name="bert").update(escalate_after_failures=1)
    llm_server.default = Answer("no", 400)
    message = say("One")
    assert reply(message) is not None
    assert Escalation.objects.open().get().to_agent_id is None
