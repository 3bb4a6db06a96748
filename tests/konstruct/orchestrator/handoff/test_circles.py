"""Handovers in a circle, or to missing agents, end with an escalation."""

from uuid import uuid4

import pytest
from django_redis import get_redis_connection

from konstruct.orchestrator.handoff import escalations, handovers
from konstruct.orchestrator.models import Agent, Escalation
from konstruct.orchestrator.replies import Status, progress_of, sent_messages
from tests.konstruct.conftest import Program, SendMessage
from tests.konstruct.orchestrator.conftest import handle
from tests.konstruct.orchestrator.handoff.conftest import FIRST, answer_to, call, hand
from tests.servers.llm import LLMServer


def test_a_circle_of_rules_ends_at_a_person(
    send_message: SendMessage, bert: Agent, carl: Agent
) -> None:
    ids = {agent.name: str(agent.id) for agent in Agent.objects.all()}
    for name, to in (("ada", "bert"), ("bert", "carl"), ("carl", "ada")):
        Agent.objects.filter(name=name).update(hand_over_on={"invoice": ids[to]})
    message = send_message("My invoice!")
    assert answer_to(message) == ("ada", escalations.NOTICE)
    hops = Escalation.objects.to_agents().order_by("opened_at")
    assert [(str(hop.to_agent_id), hop.outcome) for hop in hops] == [
        (ids["bert"], escalations.Outcome.HANDED_ON),
        (ids["carl"], escalations.Outcome.TO_PERSON),
    ]
    person = Escalation.objects.open().get()
    assert person.to_agent_id is None
    assert "ada had this conversation already" in person.reason
    held = send_message("Hello?")
    assert (answer_to(held), progress_of(sent_messages().get(pk=held.pk)).status) == (
        None,
        Status.WITH_PERSON,
    )
    # After a person had the thread, the count of handovers restarts.
    escalations.resolve(person.pk, by="eva", let_agent_answer=True)
    handle(held)
    assert answer_to(held) == ("ada", "Noted.")


def test_a_circle_of_language_models_ends_at_a_person(
    send_message: SendMessage, bert: Agent, program: Program, llm_server: LLMServer
) -> None:
    Agent.objects.filter(name="ada").update(hands_to=[bert.id])
    Agent.objects.filter(name="bert").update(hands_to=[program.agent.id])
    llm_server.answers = [call("hand_to_agent", agent="bert"), call("hand_to_agent", agent="ada")]
    assert answer_to(send_message("Hm.")) == ("ada", escalations.NOTICE)
    assert Escalation.objects.open().get().to_agent_id is None
    assert len(llm_server.requests) == 2


def test_handing_back_skips_inactive_agents(
    send_message: SendMessage, bert: Agent, carl: Agent
) -> None:
    message = send_message()
    thread = escalations.Thread.of(message)
    hand(message, bert)
    hand(message, carl)
    assert handovers.hand_back(thread, carl)
    standing = escalations.current_escalation(thread)
    assert standing == escalations.EscalationState(to_agent_id=bert.id)
    hand(message, carl)
    Agent.objects.filter(name="bert").update(is_active=False)
    assert handovers.hand_back(thread, carl)
    assert escalations.current_escalation(thread) is None
    assert not handovers.hand_back(thread, carl)


@pytest.mark.parametrize("gone", ["inactive", "deleted"])
def test_thread_of_a_deleted_agent_opens_an_escalation(
    gone: str, send_message: SendMessage, bert: Agent
) -> None:
    message = send_message()
    if gone == "inactive":
        hand(message, bert)
        Agent.objects.filter(name="bert").update(is_active=False)
    else:  # as if the owner had removed it
        Escalation.objects.create(
            **escalations.Thread.of(message).as_filter, channel="rest", to_agent_id=uuid4(),
            opened_by=escalations.OpenedBy.PERSON, reason="Gone.",
        )  # fmt: skip
        get_redis_connection("default").flushdb()
    assert answer_to(send_message("Hello?")) == ("ada", escalations.NOTICE)
    assert Escalation.objects.open().get().to_agent_id is None


def test_request_for_a_person_opens_an_escalation_for_every_agent(
    send_message: SendMessage, bert: Agent
) -> None:
    Agent.objects.filter(name="bert").update(escalate_on=["lawyer"])
    hand(send_message(thread_id="t2"), bert)
    assert answer_to(send_message("I call my lawyer", thread_id="t2")) == (
        "ada",
        escalations.NOTICE,
    )
    handover = hand(send_message(), bert)
    assert answer_to(send_message("Can I talk to a human, please?")) == ("ada", escalations.NOTICE)
    handover.refresh_from_db()
    assert handover.outcome == escalations.Outcome.TO_PERSON
    person = Escalation.objects.open().get(thread_id="t1")
    held = send_message("Anybody?")
    # A person hands the thread on: the held messages are answered.
    hand(held, bert, escalations.OpenedBy.PERSON)
    handle(held)
    assert answer_to(held) == ("bert", f"{FIRST}\n\nNoted.")
    person.refresh_from_db()
    assert person.outcome == escalations.Outcome.HANDED_ON
