"""Answers a message: does step after step until there is a reply.

Every step may be killed and run again. A step finds the rows of an earlier attempt (a reply, its
turns in the window), and the message stays queued until the last step is done. While it waits for a
language model, the worker holds a lease, and neither a transaction nor a connection. Of the rounds
with an agent's tools only the rows of the calls are kept, so that a message that was held for
consent, or for a program, can continue in any worker.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from konstruct.llm.completions import Completion, OnText, total_usage
from konstruct.orchestrator import builder, replies, runner, tool_calls, tool_catalog, usage
from konstruct.orchestrator.exceptions import AlreadyDecided, MessageNotFound
from konstruct.orchestrator.extraction.runs import enqueue as enqueue_extraction
from konstruct.orchestrator.handoff import escalations, handovers
from konstruct.orchestrator.handoff.escalations import OpenedBy
from konstruct.orchestrator.messages import KonstructMessage, Thread, lock_windows
from konstruct.orchestrator.models import Agent, AnswerOptions, ToolCall
from konstruct.orchestrator.pipeline.accept import Snapshot, load_message, read_snapshot
from memory import conf, short_term, tasks as memory_tasks
from memory.context import ContextManager, WorkingContextCompiler, recall_events, tokens
from memory.context.prompt import Prompt, PromptParts
from memory.conversations import transcript
from memory.conversations.short_term import refresh_window
from memory.conversations.window_store import Position, Turn
from memory.models import Message, Role
from memory.text.sentences import estimated_pieces
from tenants import exceptions, metrics, traces, transaction
from tenants.audit.people import Locale
from tenants.context import tenant_scope
from tenants.jobs import Lease, LeaseLost, Outcome, enqueue_task
from tenants.outbox.events import record_event
from tenants.outbox.models import EventType

# A message may be handed from agent to agent, and back; each other change happens once.
MAX_STEPS = 2 * handovers.MAX_AGENTS + 3
# The beginning of the first reply of an agent that got the thread.
INTRODUCTION = "This is {name}. This conversation was handed to me."

# No session store: no channel has a graph, and the id of a channel's thread may equal that of a
# graph's thread, which belongs to other users.
context = ContextManager(fact_floor=conf.FACT_FLOOR, near_fact_floor=conf.NEAR_FACT_FLOOR)
REPLY_SECONDS: Final = metrics.histogram(
    "konstruct_reply_seconds",
    "From the acceptance of a message to its reply, with the time that it waited.",
)


@dataclass(frozen=True)
class Draft:
    """A reply that is not stored yet.

    `prompt` is None for fixed texts, such as the notice of an escalation.
    """

    agent: Agent
    content: str
    prompt: Prompt | None = None
    usage: Mapping[str, int] | None = None
    """Numbers of tokens, as the language model reports them."""
    finish_reason: str = ""
    """Why the language model ended the text: "stop", "length" or "content_filter"; or ""."""


def handle(*, tenant_id: UUID, message_id: UUID, lease: Lease | None = None) -> None:
    """Answer a message.

    One message of a thread is leased at a time, the one that is due longest. Without a lease, the
    message and the other due ones of its thread are leased and answered, unless another worker
    answers in the thread.

    Args:
        tenant_id: the tenant.
        message_id: a message of a user.
        lease: of the claimed message. If it was held, its overdue tool calls expire first.

    Raises:
        MessageNotFound: the tenant has no such message.
    """
    with tenant_scope(tenant_id):
        if lease is not None:
            answer(lease)
            return
        lane = Thread.of(load_message(message_id)).lane
        tool_calls.expire_overdue(message_id)
        # Ends: each iteration answers the message that is due longest, or delays it.
        while (lease := replies.REPLIES.lease(message_id, lane=lane)) is not None:
            with replies.REPLIES.attempt(lease):
                answer(lease)


def answer(lease: Lease) -> None:
    """Answer one message, or record the failure and the time of the next attempt.

    The attempt is counted first: a message that kills its worker fails like any other.

    Raises:
        MessageNotFound: the message does not exist.
    """
    if lease.held_for:
        if not tool_calls.expire_overdue(lease.key):
            replies.REPLIES.hold(lease.key, lease.held_for, max_time=replies.CONSENT_TIME)
        return
    with transaction.atomic():
        snapshot = read_snapshot(lease.key)
    message = snapshot.message

    def reply(lease: Lease) -> None:
        draft = snapshot.reply or respond(snapshot, lease)
        if draft is not None:
            write_reply(snapshot, draft, lease)
            if message.created_at is not None:
                waited = timezone.now() - message.created_at
                REPLY_SECONDS.of().observe(waited.total_seconds())

    outcome = replies.REPLIES.run(lease, reply, on_failure=partial(record_failure, message))
    # A program that sent the message by REST waits for the reply itself.
    if outcome not in (None, Outcome.FAILED):
        replies.announce(message.tenant_id, message.id)


def respond(snapshot: Snapshot, lease: Lease) -> Draft | None:
    """Return the reply to the message; None if it is held, for a person or for tool calls."""
    for _ in range(MAX_STEPS):
        outcome = take_step(snapshot, lease)
        if not isinstance(outcome, Snapshot):
            return outcome
        snapshot = outcome
    escalate(snapshot, lease, OpenedBy.RULE, "The conversation went from agent to agent.")
    return escalation_notice(snapshot)


def take_step(snapshot: Snapshot, lease: Lease) -> Draft | Snapshot | None:
    """Do the next step for the message.

    Returns:
        The reply; or a new snapshot, for the next step; or None if the message is held.

    Raises:
        AgentNotFound: the agent of the message does not exist.
        LeaseLost: another worker has the message. Nothing was written.
        LLMError: the language model gives no usable answer.
    """
    message, escalation = snapshot.message, snapshot.escalation
    if escalation is not None and escalation.is_to_person:
        if escalation.message_id == str(message.id):
            return escalation_notice(snapshot)
        with lease.transaction():
            is_held = escalations.hold_for_person(message)
        # A person may have resolved the escalation since the snapshot.
        if is_held:
            return None
        return replace(snapshot, escalation=None, handover_agent=None, can_hand_back=False)
    agent = snapshot.answering_agent
    if agent is None:
        reason = "The agent to which this was handed is not active."
        return escalate(snapshot, lease, OpenedBy.RULE, reason)
    escalate_for = escalations.reason_to_escalate(message.content, agent)
    # A person who resolved an escalation has handled the earlier messages.
    if escalate_for is not None and not snapshot.was_handled_by_person:
        return escalate(snapshot, lease, *escalate_for)
    if snapshot.can_hand_back and escalations.find_phrase(message.content, agent.hand_back_on):
        with lease.transaction():
            is_handed_back = handovers.hand_back(snapshot.thread, agent)
        return (
            read_snapshot(message.id) if is_handed_back else replace(snapshot, can_hand_back=False)
        )
    handover = handovers.match_handover_rule(message.content, agent)
    # A rule that has handed the thread over for this message is not applied again.
    if handover is not None and agent.id not in snapshot.handed_over_by:
        to_agent, reason = handover
        with lease.transaction():
            handovers.hand_over_by_agent(
                message, agent, to_agent, opened_by=OpenedBy.RULE, reason=reason
            )
        return read_snapshot(message.id)
    if snapshot.consent is None:
        return ask_language_model(snapshot, agent, lease)
    approve, call_id = snapshot.consent.approve, snapshot.consent.call_id
    with lease.transaction():
        if call_id is not None:
            try:
                by, user_id = tool_calls.decided_by(message), message.user_id
                tool_calls.decide(message.tenant_id, call_id, approve, by=by, user_id=user_id)
            except AlreadyDecided:
                return replace(snapshot, consent=None)
    return Draft(
        agent, tool_calls.CONSENT_GIVEN_REPLY if approve else tool_calls.CONSENT_DENIED_REPLY
    )


def escalate(
    snapshot: Snapshot, lease: Lease, opened_by: OpenedBy, reason: str
) -> Draft | Snapshot:
    """Open an escalation to a person.

    Returns:
        The notice to the user; or a new snapshot if another message has opened an escalation.
    """
    message = snapshot.message
    with lease.transaction():
        opened = escalations.escalate_message(message, opened_by, reason)
    if opened.message_id == message.id:
        return escalation_notice(snapshot)
    return read_snapshot(message.id)


def escalation_notice(snapshot: Snapshot) -> Draft:
    """Return the reply that tells the user that a person will answer."""
    return Draft(snapshot.thread_agent, escalations.NOTICE)


def ask_language_model(snapshot: Snapshot, agent: Agent, lease: Lease) -> Draft | Snapshot | None:
    """Run approved tool calls, recall, and ask the language model.

    Returns:
        The reply; or None if the message is held; or a new snapshot if the language model has
        handed the thread over, or a program has sent results.
    """
    traces.set_attributes(agent_id=agent.id)
    message, calls = snapshot.message, list(snapshot.calls)
    if calls:
        with lease.transaction():
            calls = tool_calls.run_approved(calls)
            if any(map(tool_calls.awaits_program, calls)):
                # Not held: the program has sent the results meanwhile.
                return None if tool_calls.hold_for_program(message) else read_snapshot(message.id)
    with transaction.atomic():
        if snapshot.history is None:
            session = handovers.prompt_turns(message, agent)
        else:
            session = handovers.program_turns(message, snapshot.history)
        instructions = builder.instructions_for(agent, snapshot.instructions)
        gathered = gather_context(message, agent, session, instructions, locale=snapshot.locale)
    gathered = runner.rerank(agent, gathered, {"agent_id": agent.id, "message_id": message.id})
    prompt = build_prompt(agent, gathered, session)
    # A tool call, or the introduction of an agent after a handover, may precede the reply.
    may_stream = not (agent.tools or agent.hands_to or agent.id != message.agent_id)
    on_progress = replies.partial_reply_callback(message)
    with (
        replies.stream_reply(message.tenant_id, message.id, lease.token, on_progress)
        if may_stream
        else nullcontext()
    ) as on_text:
        completion = ask_with_tools(snapshot, agent, prompt.messages, calls, lease, on_text)
    if isinstance(completion, Completion):
        return Draft(agent, completion.text, prompt, completion.usage, completion.finish_reason)
    return completion


def gather_context(
    message: KonstructMessage,
    agent: Agent,
    session: handovers.PromptTurns | None = None,
    instructions: str = "",
    exclude: Collection[UUID] = (),
    locale: Locale | None = None,
) -> PromptParts:
    """Load the turns, and recall facts and earlier messages of the agent.

    The window has the user's recent turns with this agent, from all threads and channels, since
    their last pause. If the thread was handed over to the agent, the turns of the thread follow,
    and pauses make no difference. Turns in the prompt and the message itself are not recalled.
    """
    return context.gather(
        message.tenant_id,
        message.thread_id,
        message.content,
        agent.model_tier,
        agent_id=agent.id,
        user_id=message.user_id,
        session_messages=None if session is None else session.turns,
        policy=agent.recall_policy,
        exclude=[message.id, *exclude],
        instructions=instructions,
        pause=timedelta.max if session else timedelta(hours=agent.conversation_pause_hours),
        time_zone=agent.time_zone,
        locale=locale,
    )


def build_prompt(
    agent: Agent, gathered: PromptParts, session: handovers.PromptTurns | None = None
) -> Prompt:
    """Build the prompt of the agent, the memories, the turns and the message, within the budget.

    The parts are cut to the budget first. Then `builder.build_messages_with_memory` builds the
    messages.
    """
    date = builder.date_clause(zone=gathered.zone)
    clauses = (*(() if session is None else session.clauses), date)
    system_prompt = builder.system_prompt_with(agent, clauses)
    prompt = context.fit(gathered, system_prompt, agent.model_tier)
    fitted = prompt.fitted
    asked = builder.AgentForReply(
        agent, clauses, gathered.instructions, max_system_tokens=prompt.max_system_tokens
    )
    return replace(
        prompt,
        sent=builder.build_messages_with_memory(asked, fitted.task, fitted.messages, prompt.texts),
        own_texts=(*builder.own_texts(agent, clauses), builder.INSTRUCTIONS_OPENING),
    )


# The maximum number of rounds before the language model must answer in words.
MAX_ROUNDS: Final = 4
# The same for tools of the program, which limits its rounds itself.
MAX_PROGRAM_ROUNDS: Final = 50


def ask_with_tools(
    snapshot: Snapshot,
    agent: Agent,
    prompt: Sequence[Mapping[str, Any]],
    message_calls: Sequence[ToolCall],
    lease: Lease,
    on_text: OnText | None = None,
) -> Completion | Snapshot | None:
    """Ask the language model until it answers without tool calls.

    Args:
        snapshot: the message.
        agent: the agent that answers.
        prompt: the messages of the prompt.
        message_calls: the tool calls of the message so far, in their order.
        lease: of the reply.
        on_text: called with the text of each answer as it comes, including answers with calls.

    Returns:
        The answer with the tokens of all rounds; or None if the message is held; or a new snapshot
        if the thread was handed over.

    Raises:
        LLMError: there is no usable answer.
    """
    agent_tools = [
        *tool_catalog.tool_descriptions(agent.tools),
        *handovers.handover_tools(agent, can_hand_back=snapshot.can_hand_back),
    ]
    agent_names = {_name(tool) for tool in agent_tools}
    options = dict(snapshot.options)
    # If both have a tool with the same name, the agent's is used.
    program_tools = [tool for tool in options.pop("tools", ()) if _name(tool) not in agent_names]
    program_names = {_name(tool) for tool in program_tools}
    max_tokens = WorkingContextCompiler.TOKEN_BUDGETS[agent.model_tier]
    message = snapshot.message
    usages: list[Mapping[str, int] | None] = []
    # Ends: every round stores tool calls, and after MAX_PROGRAM_ROUNDS the model may make none.
    while True:
        # Calls of another agent, before it handed the message over, are left out.
        calls = [call for call in message_calls if (call.asked_by_id or call.agent_id) == agent.id]
        round_number = message_calls[-1].round + 1 if message_calls else 0
        rounds = {call.round for call in calls}
        agent_rounds = {call.round for call in calls if call.name not in program_names}
        messages = [*prompt, *exchanges(calls, max_tokens)]
        seconds_left = max(1.0, min(replies.seconds_left(message), settings.LLM_TIMEOUT))
        asked = builder.AgentForReply(
            agent,
            tools=[*agent_tools, *program_tools],
            may_call=len(agent_rounds) < MAX_ROUNDS and len(rounds) < MAX_PROGRAM_ROUNDS,
            options=options,
            on_text=on_text,
            timeout=None if lease.attempt == 1 else seconds_left,
            meter={"agent_id": agent.id, "agent_version": agent.version, "message_id": message.id},
        )
        completion = runner.complete(message, asked, messages)
        usages.append(completion.usage)
        if not completion.requested:
            return replace(completion, usage=total_usage(usages))
        with lease.transaction():
            if any(call.name in handovers.TOOL_NAMES for call in completion.requested):
                if handovers.run_handover_call(
                    message, agent, completion, round_number=round_number
                ):
                    return read_snapshot(message.id)
            elif tool_calls.record(
                message, agent, completion, round_number=round_number, program_tools=program_names
            ):
                return None
        message_calls = list(ToolCall.objects.of_message(message.id))


def exchanges(calls: Sequence[ToolCall], max_tokens: int) -> Iterator[dict[str, Any]]:
    """Yield the calls and their results in the format of OpenAI's API.

    The longest results, and texts before the calls, are cut so that all together have at most
    `max_tokens`.
    """
    texts = [text for call in calls for text in (call.content, call.result)]
    sizes = [tokens.count_up_to(text, max_tokens) for text in texts]
    longest = tokens.even_limit(sizes, max_tokens) if sizes else 0
    for _, group in groupby(calls, key=lambda call: call.round):
        round_calls = list(group)
        yield {
            "role": "assistant",
            "content": tokens.cut(round_calls[0].content, longest),
            "tool_calls": [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
                }
                for call in round_calls
            ],
        }
        for call in round_calls:
            result = tokens.cut(call.result, longest)
            yield {"role": "tool", "tool_call_id": call.call_id, "content": result}


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool["function"]["name"])


# --- The reply ------------------------------------------------------------------------------------


def write_reply(snapshot: Snapshot, draft: Draft | Message, lease: Lease) -> None:
    """Record the reply, append both turns to the window, and finish the job.

    Args:
        snapshot: the message.
        draft: the reply, or the one that an earlier attempt has recorded.
        lease: of the reply.

    Raises:
        LeaseLost: another worker has the message. Nothing was written.
    """
    message = snapshot.message
    recorded = (draft, None) if isinstance(draft, Message) else record_draft(snapshot, draft, lease)
    if recorded is None:
        return
    reply, position = recorded
    append_to_window(message, reply, position)
    try:
        finish(snapshot, reply, lease)
    except LeaseLost:
        # The turns may have been erased before they were appended.
        refresh_window(message.tenant_id, message.agent_id, message.user_id)
        raise
    if (agent_id := handover_agent_id(reply)) is not None:
        append_copies(message, reply, agent_id)


def record_draft(snapshot: Snapshot, draft: Draft, lease: Lease) -> tuple[Message, Position] | None:
    """Record the reply, and return it with its position in the window.

    Return None without recording it if the thread has changed.

    During the request to the language model, the thread may have been escalated or handed over, or
    its messages may have been moved to another user.
    """
    message = snapshot.message
    with lock_windows([snapshot.thread], lease):
        row = (
            Message.objects.filter(pk=message.id)
            .values_list("user_id", escalations.OPEN_ESCALATION)
            .first()
        )
        if row is None:
            raise MessageNotFound(f"No user's message has the id {message.id}.")
        user_id, escalation = row[0], escalations.EscalationState.of(row[1])
        if user_id != message.user_id:
            replies.REPLIES.cancel_attempts([message.id])
            return None  # another attempt answers it in its new thread
        if draft.prompt is not None:
            if (
                escalation is not None
                and escalation.is_to_person
                and escalations.hold_for_person(message)
            ):
                return None
            answering_id = (escalation and escalation.to_agent_id) or message.agent_id
            if draft.agent.id != answering_id:
                replies.REPLIES.cancel_attempts([message.id])
                return None  # the other agent answers it
        reply = record_reply(message, draft)
        scope = (message.tenant_id, message.agent_id, message.user_id)
        return reply, short_term.position_of(*scope, reply.pk)


def record_reply(message: KonstructMessage, draft: Draft) -> Message:
    """Store the reply to a message without one, and its recall event. Call it in a transaction."""
    content = draft.content
    if draft.agent.id != message.agent_id:
        of_agents = Message.objects.filter(**Thread.of(message).as_filter, role=Role.ASSISTANT)
        last = of_agents.order_by("-created_at", "-number").values_list("answered_by_id", flat=True)
        if last.first() != draft.agent.id:  # the first reply after a handover
            content = f"{INTRODUCTION.format(name=draft.agent.name)}\n\n{content}"
    reply, _ = transcript.record_message(
        tenant_id=message.tenant_id,
        **Thread.of(message).as_filter,  # type: ignore[arg-type]  # the names of a thread
        channel=message.channel,
        role=Role.ASSISTANT,
        name=draft.agent.name,
        content=content,
        in_reply_to=message.id,
        answered_by=draft.agent.id,
        usage=draft.usage,
        finish_reason=draft.finish_reason,
        appended=True,
        may_exist=False,
    )
    if draft.prompt is not None:
        recall_events.record_prompt(reply, draft.prompt)
    usage.count(replies=1, memories=estimated_pieces(reply.content, reply.name))
    return reply


def append_to_window(
    message: KonstructMessage, reply: Message, position: Position | None = None
) -> None:
    """Append both turns to the window. Safe to run twice."""
    question = Turn(
        role=Role.USER,
        content=message.content,
        message_id=str(message.id),
        name=message.name,
        at=message.created_at.isoformat() if message.created_at else "",
    )
    scope = (message.tenant_id, message.agent_id, message.user_id)
    short_term.append_turns(*scope, [question, Turn.of(reply)], position=position)


def finish(snapshot: Snapshot, reply: Message, lease: Lease) -> None:
    """Remove the job of the reply, and enqueue the embedding of both turns and the extraction.

    After a handover both turns are also copied, for the memory of the agent that answered.

    Raises:
        LeaseLost: another worker has the message. Nothing was written.
    """
    message = snapshot.message
    agents = (snapshot.thread_agent_or_none, snapshot.handover_agent)
    extracting = {agent.id for agent in agents if agent is not None and agent.extracts_facts}
    with transaction.atomic():
        lease.finish()
        record_event(EventType.MESSAGE_ANSWERED, message.id, about=message)
        if snapshot.options or snapshot.instructions or snapshot.history is not None:
            AnswerOptions.objects.filter(pk=message.id).delete()
        replies.notify_changed(message)
        turns, threads = [str(message.id), str(reply.id)], [snapshot.thread]
        if (agent_id := handover_agent_id(reply)) is not None:
            copies = transcript.copy_for_agent([message.id, reply.id], agent_id)
            turns += [str(copy.id) for copy in copies]
            threads.append(replace(threads[0], agent_id=agent_id))
        enqueue_extraction(
            message.tenant_id, [thread for thread in threads if thread.agent_id in extracting]
        )
        task = memory_tasks.embed_and_store
        transaction.on_commit(partial(enqueue_task, task, str(message.tenant_id), turns))


def append_copies(message: KonstructMessage, reply: Message, agent_id: UUID) -> None:
    """Append the copies of both turns to the window of the agent that answered after a handover.

    If the worker is killed before this, the next turn of that window appends them.
    """
    ids = [transcript.copy_id(message.id, agent_id), transcript.copy_id(reply.id, agent_id)]
    copies = Message.objects.filter(pk__in=ids).order_by("created_at", "number")
    turns = [Turn.of(copy) for copy in copies]
    short_term.append_turns(message.tenant_id, agent_id, message.user_id, turns)


def handover_agent_id(reply: Message) -> UUID | None:
    """Return the id of the agent that wrote the reply, if the thread was handed over to it."""
    return None if reply.answered_by_id == reply.agent_id else reply.answered_by_id


# --- No reply -------------------------------------------------------------------------------------


def record_failure(message: KonstructMessage, error: Exception) -> bool:
    """Record a failed attempt; escalate if the agent's limit of failed replies is reached.

    Call it in a transaction of the lease. Return whether the reply has failed permanently.
    """
    is_permanent = replies.record_failure(message, error)
    if is_permanent and escalations.reached_failure_limit(message):
        reason = f"The agent could not answer: {exceptions.reason_of(error)}"
        escalations.escalate_message(message, OpenedBy.RULE, reason)
        # The reply of that message is the notice, which needs no language model.
        replies.retry(message.id)
    replies.notify_changed(message)
    return is_permanent
