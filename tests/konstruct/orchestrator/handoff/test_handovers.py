"""Threads that another agent answers: handed over in every way, lost by nothing, in no circle."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django_redis import get_redis_connection

from konstruct.orchestrator import pipeline
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.exceptions import (
    AgentInvalid,
    AgentNotFound,
    NothingToEscalate,
    NothingToHandOver,
    WithAnotherAgent,
)
from konstruct.orchestrator.handoff import escalations, handovers
from konstruct.orchestrator.handoff.answering import Answering, who_answers
from konstruct.orchestrator.handoff.escalations import NOTICE, OpenedBy, Outcome, Thread
from konstruct.orchestrator.models import Agent, Escalation, HeldFor, PendingReply, ToolCall
from konstruct.orchestrator.pipeline import respond, write
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from konstruct.orchestrator.replies.status import Status, progress_of, sent_messages
from konstruct.trust.ledger import verify
from memory.conversations.short_term import get_recent_messages
from memory.facts import LongTermMemory
from memory.indexing.outbox import drain
from memory.models import MemoryEntry, Message, RecallEvent
from memory.recall import recall
from tenants.context import tenant_scope
from tenants.redis_keys import escalation_status_key
from tests.konstruct.conftest import Program
from tests.llm_server import Answer, LLMServer

Say = Callable[..., Message]
QUESTION = "What is my invoice number?"
FIRST = "This is bert. This conversation was handed to me."


@pytest.fixture
def bert(program: Program) -> Agent:
    """Another agent of the same tenant."""
    return create_agent(tenant_id=program.tenant.id, name="bert", system_prompt="You are Bert.")


@pytest.fixture
def carl(program: Program) -> Agent:
    """A third one."""
    return create_agent(tenant_id=program.tenant.id, name="carl", system_prompt="You are Carl.")


def reply(message: Message) -> Message | None:
    return Message.objects.filter(in_reply_to=message).first()


def said(message: Message) -> tuple[str, str] | None:
    """Who answered, and what."""
    found = reply(message)
    return None if found is None else (found.name, found.content)


def work(message: Message) -> None:
    pipeline.handle(tenant_id=message.tenant_id, message_id=message.id)


def hand(message: Message, agent: Agent, by: OpenedBy = OpenedBy.PROGRAM) -> Escalation:
    handover, _ = handovers.hand_over(
        Thread.of(message), agent.id, opened_by=by, name="crm", reason="Invoices are Bert's."
    )
    return handover


def call(name: str, **arguments: Any) -> Answer:
    """A language model's wish to use a tool."""
    function = {"name": name, "arguments": arguments}
    return Answer({"tool_calls": [{"id": "c", "function": function}]})


def offered(request: Any) -> set[str]:
    return {tool["function"]["name"] for tool in request.body.get("tools", ())}


def words(request: Any) -> str:
    return "\n".join(str(message["content"]) for message in request.body["messages"])


def test_the_other_agent_answers_this_thread_and_says_who_it_is_first(
    say: Say, bert: Agent, llm_server: LLMServer, program: Program
) -> None:
    before = say("My sister lives in Lisbon.")
    handover = hand(before, bert)
    first, second = say("Where is my invoice?"), say("And the other?")
    elsewhere, another = say("Hello", thread_id="t2"), say("Hello", user_id="otto")
    assert said(first) == ("bert", f"{FIRST}\n\nNoted.")
    assert said(second) == ("bert", "Noted.")
    assert said(elsewhere) == said(another) == ("ada", "Noted.")
    for message in (first, second):
        answered = reply(message)
        assert answered is not None
        assert (message.agent_id, answered.agent_id) == (program.agent.id, program.agent.id)
        assert answered.answered_by_id == bert.id
    asked = llm_server.requests[1]
    assert asked.body["messages"][0]["content"].startswith("You are Bert.")
    assert "You are Ada" not in words(asked)
    assert asked.body["messages"][1:] == [
        {"role": "user", "content": "My sister lives in Lisbon."},
        {"role": "assistant", "content": "ada: Noted."},
        {"role": "user", "content": "Where is my invoice?"},
    ]
    assert (handover.opened_by, handover.to_agent_id) == (OpenedBy.PROGRAM, bert.id)


def test_a_phrase_hands_over_and_the_message_is_answered_by_the_other(
    say: Say, bert: Agent
) -> None:
    Agent.objects.filter(name="ada").update(hand_over_on={"invoice": str(bert.id)})
    message = say("Where is my INVOICE?")
    assert said(message) == ("bert", f"{FIRST}\n\nNoted.")
    handover = Escalation.objects.open().get()
    assert (handover.opened_by, handover.message_id) == (OpenedBy.RULE, message.id)
    assert handover.reason == "The message says 'invoice'."
    Agent.objects.filter(name="bert").update(hand_back_on=["library"])
    assert said(say("Now about the library.")) == ("ada", "Noted.")
    handover.refresh_from_db()
    assert (handover.outcome, handover.resolved_by) == (Outcome.HANDED_BACK, "bert")
    assert not Escalation.objects.open().exists()


def test_the_language_model_hands_over_and_back_and_nothing_of_the_first_ones_calls_is_shown(
    say: Say, bert: Agent, llm_server: LLMServer
) -> None:
    Agent.objects.filter(name="ada").update(hands_to=[bert.id])
    llm_server.answers = [
        call("hand_to_agent", agent="bert", reason="SECRET of Ada"),
        Answer({"content": "Your invoice is paid."}),
        call("hand_back"),
        Answer({"content": "Ada again."}),
    ]
    message, later = say("Where is my invoice?"), say("Thanks. And my book?")
    assert said(message) == ("bert", f"{FIRST}\n\nYour invoice is paid.")
    assert said(later) == ("ada", "Ada again.")
    first, second, third, fourth = llm_server.requests
    assert offered(first) == {"hand_to_agent"}
    assert offered(second) == offered(third) == {"hand_back"}
    assert offered(fourth) == {"hand_to_agent"}
    assert "SECRET" not in words(second) + words(third)
    assert "bert: " not in words(fourth)  # its turns are in Ada's own window, under no name
    rows = ToolCall.objects.order_by("created_at").values_list("name", "state", "result")
    assert list(rows) == [
        ("hand_to_agent", "done", "Handed to bert."),
        ("hand_back", "done", "Handed back."),
    ]
    assert ToolCall.objects.get(name="hand_back").asked_by_id == bert.id


@pytest.mark.parametrize("wanted", ["zoe", "ada", "carl", "", None, ["bert"], 7])
def test_an_agent_hands_over_to_none_but_those_that_it_may(
    wanted: Any, say: Say, bert: Agent, carl: Agent, llm_server: LLMServer
) -> None:
    Agent.objects.filter(name="ada").update(hands_to=[bert.id])
    llm_server.answers = [call("hand_to_agent", agent=wanted)]
    assert said(say()) == ("ada", "Noted.")
    told = llm_server.requests[1].body["messages"][-1]
    assert told["role"] == "tool"
    assert told["content"].startswith("Error: there is no agent")
    assert not Escalation.objects.exists()


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


def test_back_goes_to_the_one_before_and_over_those_that_are_inactive(
    say: Say, bert: Agent, carl: Agent
) -> None:
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
def test_a_thread_whose_agent_is_gone_falls_to_a_person(gone: str, say: Say, bert: Agent) -> None:
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


def test_a_rule_for_an_agent_that_is_gone_calls_a_person(say: Say, bert: Agent) -> None:
    Agent.objects.filter(name="ada").update(hand_over_on={"invoice": str(bert.id)})
    Agent.objects.filter(name="bert").update(is_active=False)
    assert said(say("My invoice!")) == ("ada", NOTICE)


def test_who_asks_for_a_person_gets_one_from_whichever_agent(say: Say, bert: Agent) -> None:
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


def test_the_given_up_replies_of_the_one_who_has_the_thread_count(
    say: Say, bert: Agent, llm_server: LLMServer
) -> None:
    hand(say(), bert)
    Agent.objects.filter(name="bert").update(escalate_after_failures=1)
    llm_server.default = Answer("no", 400)
    message = say("One")
    assert reply(message) is not None
    assert Escalation.objects.open().get().to_agent_id is None


def test_a_reply_on_its_way_is_given_anew_by_who_has_the_thread_then(
    say: Say, bert: Agent, monkeypatch: pytest.MonkeyPatch, llm_server: LLMServer
) -> None:
    message = say("Hello", handled=False)
    ask, asked = respond.ask_language_model, []

    def meanwhile(*arguments: Any) -> Any:
        draft = ask(*arguments)
        if not asked:
            asked.append(hand(message, bert))
        return draft

    monkeypatch.setattr(respond, "ask_language_model", meanwhile)
    work(message)
    assert said(message) == ("bert", f"{FIRST}\n\nNoted.")
    assert len(llm_server.requests) == 2


@pytest.mark.parametrize("step", ["record_reply", "append_to_window", "finish", "append_copies"])
def test_a_worker_that_is_killed_begins_anew_and_says_all_once(
    step: str, say: Say, bert: Agent, monkeypatch: pytest.MonkeyPatch, program: Program
) -> None:
    Agent.objects.filter(name="ada").update(hand_over_on={"invoice": str(bert.id)})

    def killed(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(write, step, killed)
        with pytest.raises(KeyboardInterrupt):
            say("My invoice!")
    get_redis_connection("default").flushdb()
    message = Message.objects.get(content="My invoice!", agent_id=program.agent.id)
    work(message)
    assert said(message) == ("bert", f"{FIRST}\n\nNoted.")
    assert Escalation.objects.count() == 1
    assert Message.objects.filter(agent_id=bert.id).count() == 2
    say("More")
    window = get_recent_messages(program.tenant.id, bert.id, "maria")
    assert [turn["content"] for turn in window] == [
        "My invoice!", f"{FIRST}\n\nNoted.", "More", "Noted.",
    ]  # fmt: skip


def test_each_agent_remembers_what_it_was_part_of(
    say: Say, bert: Agent, program: Program, llm_server: LLMServer
) -> None:
    say("My boat is called Argo.")
    hand(Message.objects.filter(role="user").get(), bert)
    say("My invoice number is 4711.")
    drain(program.tenant.id)
    tenant, ada = program.tenant.id, program.agent.id
    told = [
        hit.content for hit in recall(tenant, bert.id, "maria", "What is my invoice number?").hits
    ]
    assert "My invoice number is 4711." in told
    assert all("Argo" not in content for content in told)
    told = [hit.content for hit in recall(tenant, ada, "maria", "What is my invoice number?").hits]
    assert "My invoice number is 4711." in told
    window = get_recent_messages(tenant, bert.id, "maria")
    assert window[0]["content"] == "My invoice number is 4711."
    ledger = verify(program.tenant.id, "a")
    assert ledger.findings == []
    assert ledger.counts["accepted"] == 2


def test_no_turn_stands_twice_in_the_prompt_of_a_thread_that_was_handed_over(
    say: Say, bert: Agent, program: Program, llm_server: LLMServer
) -> None:
    hand(say("My boat is called Argo."), bert)
    say("My invoice number is 4711.")
    drain(program.tenant.id)
    say("What is my invoice number, and what my boat's name?")
    asked = words(llm_server.requests[-1])
    assert asked.count("4711") == asked.count("Argo") == 1
    event = RecallEvent.objects.order_by("-created_at").first()
    assert event is None or event.agent_id in (bert.id, program.agent.id)


def test_facts_are_those_of_the_agent_that_answers_and_the_trace_is_its(
    say: Say, bert: Agent, program: Program, llm_server: LLMServer
) -> None:
    memory, tenant = LongTermMemory(), program.tenant.id
    for agent_id, content in (
        (program.agent.id, "The invoice of maria: Ada alone knows it."),
        (bert.id, "The invoice of maria: Bert knows it."),
        (None, "The invoice of maria: all agents know it."),
    ):
        memory.store(MemoryEntry(tenant_id=tenant, agent_id=agent_id, content=content))
    message = say("Hello")
    hand(message, bert)
    asked = say("Where is the invoice of maria?")
    prompt = words(llm_server.requests[-1])
    assert "Bert knows it" in prompt
    assert "all agents know it" in prompt
    assert "Ada alone" not in prompt
    drain(tenant)
    event = RecallEvent.objects.get(reply__in_reply_to=asked)
    assert event.agent_id == bert.id
    assert "Ada alone" not in str(event.facts) + str(event.prompt)


def test_a_consent_that_was_asked_for_is_the_first_agents_and_the_other_one_answers(
    say: Say, bert: Agent, program: Program, llm_server: LLMServer
) -> None:
    Agent.objects.filter(name="ada").update(tools=["remember_fact"])
    llm_server.answers = [call("remember_fact", fact="Maria likes tea.")]
    asked = say("Remember that I like tea.")
    assert PendingReply.objects.get(pk=asked.pk).held_for == HeldFor.CONSENT
    hand(asked, bert)
    yes = say("yes")
    assert said(yes) == ("bert", f"{FIRST}\n\nThank you: I will.")
    work(asked)
    assert said(asked) == ("bert", "Noted.")
    assert MemoryEntry.objects.get().agent_id == program.agent.id
    assert "tea" not in str(llm_server.requests[-1].body.get("tools", ""))
    # What the other one asks for is done for that one.
    Agent.objects.filter(name="bert").update(tools=["remember_fact"])
    llm_server.answers = [call("remember_fact", fact="Maria pays late.")]
    say("Remember that I pay late.")
    say("yes")
    work(Message.objects.get(content="Remember that I pay late.", agent_id=program.agent.id))
    assert MemoryEntry.objects.get(content="Maria pays late.").agent_id == bert.id


def test_the_copy_in_the_cache_says_to_whom(
    say: Say, bert: Agent, program: Program, django_capture_on_commit_callbacks: Any
) -> None:
    message = say()
    thread = Thread.of(message)
    key = escalation_status_key(program.tenant.id, "t1")
    with django_capture_on_commit_callbacks(execute=True):
        hand(message, bert)
    assert who_answers(thread) == Answering(agent_id=bert.id)
    assert f"agent {bert.id}".encode() in get_redis_connection("default").get(key)
    with django_capture_on_commit_callbacks(execute=True):
        escalations.open_escalation(thread, opened_by=OpenedBy.PROGRAM, reason="Now a person.")
    assert who_answers(thread) == Answering()
    assert b"person" in get_redis_connection("default").get(key)
    get_redis_connection("default").flushdb()
    assert who_answers(thread) == Answering()


def test_what_cannot_be_handed_over_is_refused_and_changes_nothing(
    say: Say, bert: Agent, program: Program, tenant_b: Any, make_program: Any
) -> None:
    message = say()
    other = make_program(tenant_b)
    with tenant_scope(program.tenant.id):
        with pytest.raises(AgentNotFound):
            hand(message, other.agent)
        with pytest.raises(NothingToHandOver):
            hand(message, program.agent)
        with pytest.raises(NothingToEscalate):
            handovers.hand_over(
                Thread(program.agent.id, "nobody", "t1"), bert.id,
                opened_by=OpenedBy.PROGRAM, name="crm", reason="x",
            )  # fmt: skip
        Agent.objects.filter(name="bert").update(is_active=False)
        with pytest.raises(AgentNotFound):
            hand(message, bert)
        assert not Escalation.objects.exists()
        Agent.objects.filter(name="bert").update(is_active=True)
        handover = hand(message, bert)
        assert handovers.hand_over(
            Thread.of(message), bert.id, opened_by=OpenedBy.PERSON, name="eva", reason="Again."
        ) == (handover, False)
        with pytest.raises(WithAnotherAgent):
            escalations.answer_as_person(handover.pk, "Hello", name="eva")


@pytest.mark.parametrize(
    "fields",
    [
        {"hands_to": ["0b6ef0bd-51a8-4c92-9f1e-7d0f5a3b6c21"]},
        {"hand_over_on": {"invoice": "0b6ef0bd-51a8-4c92-9f1e-7d0f5a3b6c21"}},
        {"hand_over_on": {"invoice": "bert"}},
        {"hand_over_on": {" ": None}},
        {"hand_over_on": ["invoice"]},
        {"hand_back_on": [" "]},
    ],
)
def test_an_agent_names_only_other_agents_of_its_tenant(
    fields: Any, program: Program, tenant_b: Any, make_program: Any
) -> None:
    other = make_program(tenant_b)
    for given in (fields, {"hands_to": [other.agent.id]}):
        with pytest.raises(AgentInvalid):
            create_agent(tenant_id=program.tenant.id, name="dora", **given)
    assert not Agent.objects.filter(name="dora").exists()


def test_two_tenants_with_the_same_ids_hand_over_apart(
    say: Say, bert: Agent, program: Program, program_b: Program, llm_server: LLMServer
) -> None:
    ada = program.agent.id
    with tenant_scope(program_b.tenant.id):
        create_agent(tenant_id=program_b.tenant.id, id=ada, name="other ada")
        create_agent(tenant_id=program_b.tenant.id, id=bert.id, name="bert")
    hand(say("Hello"), bert)
    assert said(say("Hello again")) == ("bert", f"{FIRST}\n\nNoted.")
    with tenant_scope(program_b.tenant.id):
        incoming = Incoming(ada, "maria", "t1", "rest", "Hello again")
        message, _ = accept(incoming, tenant_id=program_b.tenant.id)
        work(message)
        assert said(message) == ("other ada", "Noted.")
        assert who_answers(Thread.of(message)) is None
        assert Message.objects.count() == 2
    assert "Hello again" not in words(llm_server.requests[-1]).replace(
        llm_server.requests[-1].question, ""
    )
