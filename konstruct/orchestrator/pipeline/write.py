"""Writes the reply to a message, or the failure of an attempt.

Each function may be killed and run again; existing rows are found and kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from konstruct.orchestrator import replies, usage
from konstruct.orchestrator.exceptions import MessageNotFound
from konstruct.orchestrator.extraction.queue import enqueue as enqueue_extraction
from konstruct.orchestrator.handoff import escalations
from konstruct.orchestrator.handoff.escalations import OPEN_ESCALATION, EscalationState, OpenedBy
from konstruct.orchestrator.messages import KonstructMessage, Thread, lock_windows
from konstruct.orchestrator.models import Agent, AnswerOptions
from konstruct.orchestrator.pipeline.accept import Snapshot
from memory import short_term, tasks as memory_tasks
from memory.context.prompt import Prompt
from memory.context.recall_events import record_prompt
from memory.conversations import transcript
from memory.conversations.short_term import refresh_window
from memory.conversations.transcript import copy_for_agent, copy_id
from memory.conversations.window_store import Position, Turn
from memory.models import Message, Role
from memory.text.sentences import estimated_pieces
from tenants import transaction
from tenants.exceptions import reason_of
from tenants.jobs import Lease, LeaseLost, enqueue_task
from tenants.outbox.events import record_event
from tenants.outbox.models import EventType


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


# The beginning of the first reply of an agent that got the thread.
INTRODUCTION = "This is {name}. This conversation was handed to me."


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
        row = Message.objects.filter(pk=message.id).values_list("user_id", OPEN_ESCALATION).first()
        if row is None:
            raise MessageNotFound(f"No user's message has the id {message.id}.")
        user_id, escalation = row[0], EscalationState.of(row[1])
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
        record_prompt(reply, draft.prompt)
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
            copies = copy_for_agent([message.id, reply.id], agent_id)
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
    ids = [copy_id(message.id, agent_id), copy_id(reply.id, agent_id)]
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
        reason = f"The agent could not answer: {reason_of(error)}"
        escalations.escalate_message(message, OpenedBy.RULE, reason)
        # The reply of that message is the notice, which needs no language model.
        replies.retry(message.id)
    replies.notify_changed(message)
    return is_permanent
