"""Determines the reply to a message: decides the next step until there is a reply."""

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from uuid import UUID

from konstruct.llm.completions import Completion, OnText
from konstruct.orchestrator import builder, runner
from konstruct.orchestrator.builder import instructions_for
from konstruct.orchestrator.handoff import escalations, handovers, thread_turns
from konstruct.orchestrator.handoff.detection import find_phrase
from konstruct.orchestrator.handoff.escalations import OpenedBy
from konstruct.orchestrator.handoff.thread_turns import PromptTurns
from konstruct.orchestrator.messages import KonstructMessage
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.models.agents import recall_policy
from konstruct.orchestrator.pipeline import write
from konstruct.orchestrator.pipeline.decisions import (
    AskModel,
    DecideToolCall,
    Decision,
    Draft,
    Escalate,
    HandBack,
    HandOver,
    Hold,
    escalation_notice,
)
from konstruct.orchestrator.pipeline.snapshot import Snapshot
from konstruct.orchestrator.pipeline.tool_rounds import ask_with_tools, may_use_tools
from konstruct.orchestrator.replies import delivery_hooks
from konstruct.orchestrator.replies.partial_reply import stream_reply
from konstruct.orchestrator.runner import RunOptions
from memory.conf import FACT_FLOOR, NEAR_FACT_FLOOR
from memory.context import ContextManager
from memory.context.prompt import Prompt, PromptParts
from tenants import traces
from tenants.jobs import Lease

# A message may be handed from agent to agent, and back; each other change happens once.
MAX_DECISIONS = 2 * handovers.MAX_AGENTS + 3

# No session store: no channel has a graph, and the id of a channel's thread may equal that of a
# graph's thread, which belongs to other users.
context = ContextManager(fact_floor=FACT_FLOOR, near_fact_floor=NEAR_FACT_FLOOR)


def respond(snapshot: Snapshot, lease: Lease) -> Draft | None:
    """Return the reply to the message; None if it is held, for a person or for tool calls."""
    for _ in range(MAX_DECISIONS):
        decision = decide(snapshot)
        if isinstance(decision, AskModel):
            outcome = ask_language_model(snapshot, decision.agent, lease)
        else:
            outcome = write.apply_decision(decision, snapshot, lease)
        if isinstance(outcome, Draft):
            return outcome
        if isinstance(outcome, Hold):
            return None
        snapshot = outcome
    write.escalate(snapshot, lease, "The conversation went from agent to agent.")
    return escalation_notice(snapshot)


def decide(snapshot: Snapshot) -> Decision:
    """Return the next step for the message, from the snapshot alone. Raises AgentNotFound."""
    message, escalation = snapshot.message, snapshot.escalation
    if escalation is not None and escalation.is_to_person:
        if escalation.message_id == str(message.id):
            return escalation_notice(snapshot)
        return Hold.FOR_PERSON
    agent = snapshot.answering_agent
    if agent is None:
        return Escalate(OpenedBy.RULE, "The agent to which this was handed is not active.")
    reason = escalations.reason_to_escalate(message.content, agent)
    # A person who resolved an escalation has handled the earlier messages.
    if reason is not None and not snapshot.was_handled_by_person:
        return Escalate(*reason)
    if snapshot.can_hand_back and find_phrase(message.content, agent.hand_back_on):
        return HandBack(agent)
    handover = handovers.match_handover_rule(message.content, agent)
    # A rule that has handed the thread over for this message is not applied again.
    if handover is not None and agent.id not in snapshot.handed_over_by:
        return HandOver(agent, *handover)
    if snapshot.consent is not None:
        return DecideToolCall(agent, snapshot.consent)
    return AskModel(agent)


def ask_language_model(snapshot: Snapshot, agent: Agent, lease: Lease) -> Draft | Hold | Snapshot:
    """Run approved tool calls, recall, and ask the language model.

    Returns:
        The reply; or Hold if the message is held; or a new snapshot if the language model has
        handed the thread over.
    """
    traces.set_attributes(agent_id=agent.id)
    message, calls = snapshot.message, write.run_approved_calls(snapshot, lease)
    if isinstance(calls, Hold):
        return calls
    session = None
    if snapshot.history is not None:
        session = thread_turns.program_turns(message, snapshot.history)
    elif agent.id != snapshot.thread.agent_id or thread_turns.is_shared_channel(message.channel):
        session = thread_turns.prompt_turns(message, agent)
    instructions = instructions_for(agent, snapshot.instructions)
    prompt = build_prompt(agent, gather_context(message, agent, session, instructions), session)
    has_tools = may_use_tools(agent, snapshot.thread)
    with nullcontext() if has_tools else _streaming(message, agent, lease) as on_text:
        if has_tools or calls or "tools" in snapshot.options:
            completion = ask_with_tools(snapshot, agent, prompt.messages, calls, lease, on_text)
        else:
            options = RunOptions(options=snapshot.options, on_text=on_text, agent_id=agent.id)
            completion = runner.complete(message, agent, prompt.messages, options)
    if isinstance(completion, Completion):
        return Draft.from_completion(completion, agent, prompt)
    return completion


def _streaming(
    message: KonstructMessage, agent: Agent, lease: Lease
) -> AbstractContextManager[OnText | None]:
    """Stream the reply to clients that watch it while it is written.

    After a handover nothing is streamed, because `write.with_introduction` changes the text.
    """
    if agent.id != message.agent_id:
        return nullcontext()
    return stream_reply(
        message.tenant_id, message.id, lease.token, delivery_hooks.partial_reply_callback(message)
    )


def gather_context(
    message: KonstructMessage,
    agent: Agent,
    session: PromptTurns | None = None,
    instructions: str = "",
    exclude: Collection[UUID] = (),
) -> PromptParts:
    """Load the turns, and recall facts and earlier messages of the agent.

    The window has the user's recent turns with this agent, from all threads and channels. If the
    thread was handed over to the agent, the turns of the thread follow. Turns in the prompt and the
    message itself are not recalled.
    """
    return context.gather(
        message.tenant_id,
        message.thread_id,
        message.content,
        agent.model_tier,
        agent_id=agent.id,
        user_id=message.user_id,
        session_messages=None if session is None else session.turns,
        policy=recall_policy(agent),
        exclude=[message.id, *exclude],
        instructions=instructions,
    )


def build_prompt(agent: Agent, gathered: PromptParts, session: PromptTurns | None = None) -> Prompt:
    """Build the prompt of the agent, the memories, the turns and the message, within the budget.

    The parts are cut to the budget first. Then `builder.build_messages_with_memory` builds the
    messages.
    """
    clauses = (*(() if session is None else session.clauses), builder.date_clause())
    system_prompt = builder.system_prompt_with(agent, clauses)
    prompt = context.fit(gathered, system_prompt, agent.model_tier)
    fitted = prompt.fitted
    options = builder.PromptOptions(
        clauses, prompt.max_system_tokens, instructions=gathered.instructions
    )
    return prompt.with_messages(
        builder.build(agent, fitted.task, fitted.messages, prompt.texts, options)
    )
