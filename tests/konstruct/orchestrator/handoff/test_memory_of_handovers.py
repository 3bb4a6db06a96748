"""The memory and the prompts of each agent of a thread that was handed over."""

from konstruct.consistency import verify
from konstruct.orchestrator.models import Agent, HeldFor, PendingReply
from memory.conversations.short_term import get_recent_messages
from memory.facts import LongTermMemory
from memory.indexing import drain
from memory.models import MemoryEntry, Message, RecallEvent
from memory.recall import recall
from tests.konstruct.conftest import Program, SendMessage
from tests.konstruct.orchestrator.conftest import handle
from tests.konstruct.orchestrator.handoff.conftest import FIRST, answer_to, call, hand, words
from tests.memory.recall_traces import trace_of
from tests.servers.llm import LLMServer


def test_each_agent_remembers_its_own_part_of_the_thread(
    send_message: SendMessage, bert: Agent, program: Program, llm_server: LLMServer
) -> None:
    send_message("My boat is called Argo.")
    hand(Message.objects.filter(role="user").get(), bert)
    send_message("My invoice number is 4711.")
    drain(program.tenant.id)
    tenant, ada = program.tenant.id, program.agent.id
    contents = [
        hit.content for hit in recall(tenant, bert.id, "maria", "What is my invoice number?").hits
    ]
    assert "My invoice number is 4711." in contents
    assert all("Argo" not in content for content in contents)
    contents = [
        hit.content for hit in recall(tenant, ada, "maria", "What is my invoice number?").hits
    ]
    assert "My invoice number is 4711." in contents
    turns = program.get("/api/v1/conversations/transcript/?agent=bert&user_id=maria").json()[
        "results"
    ]
    assert {turn["channel"] for turn in turns} == {"handover"}
    window = get_recent_messages(tenant, bert.id, "maria")
    assert window[0]["content"] == "My invoice number is 4711."
    ledger = verify(program.tenant.id, "a")
    assert ledger.findings == []
    assert ledger.counts["accepted"] == 2


def test_prompt_contains_each_turn_once_after_a_handover(
    send_message: SendMessage, bert: Agent, program: Program, llm_server: LLMServer
) -> None:
    hand(send_message("My boat is called Argo."), bert)
    send_message("My invoice number is 4711.")
    drain(program.tenant.id)
    send_message("What is my invoice number, and what my boat's name?")
    request_words = words(llm_server.requests[-1])
    assert request_words.count("4711") == request_words.count("Argo") == 1
    event = RecallEvent.objects.order_by("-created_at").first()
    assert event is None or event.agent_id in (bert.id, program.agent.id)


def test_facts_are_those_of_the_agent_that_answers_and_the_trace_is_its(
    send_message: SendMessage, bert: Agent, program: Program, llm_server: LLMServer
) -> None:
    memory, tenant = LongTermMemory(), program.tenant.id
    for agent_id, content in (
        (program.agent.id, "The invoice of maria: Ada alone knows it."),
        (bert.id, "The invoice of maria: Bert knows it."),
        (None, "The invoice of maria: all agents know it."),
    ):
        memory.store(MemoryEntry(tenant_id=tenant, agent_id=agent_id, content=content))
    message = send_message("Hello")
    hand(message, bert)
    invoice_question = send_message("Where is the invoice of maria?")
    prompt = words(llm_server.requests[-1])
    assert "Bert knows it" in prompt
    assert "all agents know it" in prompt
    assert "Ada alone" not in prompt
    drain(tenant)
    event = RecallEvent.objects.get(reply__in_reply_to=invoice_question)
    assert event.agent_id == bert.id
    assert "Ada alone" not in str(trace_of(event))


def test_a_consent_that_was_asked_for_is_the_first_agents_and_the_other_one_answers(
    send_message: SendMessage, bert: Agent, program: Program, llm_server: LLMServer
) -> None:
    Agent.objects.filter(name="ada").update(tools=["remember_fact"])
    llm_server.answers = [call("remember_fact", fact="Maria likes tea.")]
    message = send_message("Remember that I like tea.")
    assert PendingReply.objects.get(pk=message.pk).held_for == HeldFor.CONSENT
    hand(message, bert)
    yes = send_message("yes")
    assert answer_to(yes) == ("bert", f"{FIRST}\n\nThank you: I will.")
    handle(message)
    assert answer_to(message) == ("bert", "Noted.")
    assert MemoryEntry.objects.get().agent_id == program.agent.id
    assert "tea" not in str(llm_server.requests[-1].body.get("tools", ""))
    # A request of the other person has effect for that person.
    Agent.objects.filter(name="bert").update(tools=["remember_fact"])
    llm_server.answers = [call("remember_fact", fact="Maria pays late.")]
    send_message("Remember that I pay late.")
    send_message("yes")
    handle(Message.objects.get(content="Remember that I pay late.", agent_id=program.agent.id))
    assert MemoryEntry.objects.get(content="Maria pays late.").agent_id == bert.id
