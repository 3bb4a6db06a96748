"""Writes the decisions about a message; the other modules of the pipeline only read.

Each function may be killed and run again; existing rows are found and kept.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from uuid import UUID

from konstruct.llm.completions import Completion
from konstruct.orchestrator import usage
from konstruct.orchestrator.exceptions import AlreadyDecided, MessageNotFound
from konstruct.orchestrator.extraction.queue import enqueue as enqueue_extraction
from konstruct.orchestrator.handoff import escalations, handovers, thread_turns
from konstruct.orchestrator.handoff.escalations import OpenedBy, who_answers
from konstruct.orchestrator.messages import KonstructMessage, Thread, locked_windows
from konstruct.orchestrator.models import Agent, AnswerOptions, ToolCall
from konstruct.orchestrator.pipeline.decisions import (
    CallPerson,
    ConsentDecided,
    Decision,
    Draft,
    HandBack,
    Held,
    PassOn,
    notice,
)
from konstruct.orchestrator.pipeline.snapshot import Snapshot, read
from konstruct.orchestrator.replies import delivery_hooks, queue
from konstruct.orchestrator.tools import tool_calls
from memory import short_term
from memory import tasks as memory_tasks
from memory.conversations import transcript
from memory.conversations.copies import copy_for_agent, copy_id
from memory.conversations.reading import Turn
from memory.models import Message, Role
from tenants import transaction
from tenants.exceptions import reason_of
from tenants.jobs import Lease, enqueue_task

# The beginning of the first reply of an agent that got the thread.
INTRODUCTION = "This is {name}. This conversation was handed to me."


# --- Who answers, and what may be done ------------------------------------------------------------


def carry_out(decision: Decision, snapshot: Snapshot, lease: Lease) -> Draft | Held | Snapshot:
    """Write a decision.

    Returns:
        The draft of a reply; or that the message is held; or a new snapshot for the next decision.

    Raises:
        LeaseLost: another worker has the message. Nothing was written.
    """
    if isinstance(decision, Draft):
        return decision
    if isinstance(decision, CallPerson):
        return call_person(snapshot, lease, decision.reason, decision.opened_by)
    with lease.transaction():
        match decision:
            case Held():
                # The person may have resolved the escalation meanwhile.
                held = escalations.hold_for_person(snapshot.message)
                return decision if held else snapshot.without_handover()
            case HandBack():
                if not handovers.hand_back(snapshot.thread, decision.from_agent):
                    return replace(snapshot, may_hand_back=False)
            case PassOn():
                handovers.pass_on(
                    snapshot.message,
                    decision.from_agent,
                    decision.to_agent,
                    opened_by=OpenedBy.RULE,
                    reason=decision.reason,
                )
            case ConsentDecided(agent, consent):
                if consent.call_id is not None:
                    try:
                        tool_calls.decide_by_message(
                            snapshot.message, consent.call_id, consent.approve
                        )
                    except AlreadyDecided:
                        return replace(snapshot, consent=None)
                reply = (
                    tool_calls.CONSENT_GIVEN_REPLY
                    if consent.approve
                    else tool_calls.CONSENT_DENIED_REPLY
                )
                return Draft(agent, reply)
    return read(snapshot.message)


def call_person(
    snapshot: Snapshot, lease: Lease, reason: str, opened_by: OpenedBy = OpenedBy.RULE
) -> Draft | Snapshot:
    """Open an escalation to a person.

    Returns:
        The notice to the user; or a new snapshot, if another message has opened one.

    Raises:
        LeaseLost: another worker has the message. Nothing was written.
    """
    message = snapshot.message
    with lease.transaction():
        opened, _ = escalations.open_escalation(
            snapshot.thread,
            opened_by=opened_by,
            reason=reason,
            channel=message.channel,
            message_id=message.id,
        )
    return notice(snapshot) if opened.message_id == message.id else read(message)


def carry_out_calls(snapshot: Snapshot, lease: Lease) -> Held | list[ToolCall]:
    """Run the approved tool calls of a message.

    Returns:
        All its calls; or that the message is held, until a program sends its results.

    Raises:
        LeaseLost: another worker has the message. No tool was run.
    """
    if not snapshot.calls:
        return []
    with lease.transaction():
        calls = tool_calls.carry_out(snapshot.calls)
        is_held = any(map(tool_calls.awaits_client, calls)) and tool_calls.hold_for_client(
            snapshot.message
        )
    return Held.FOR_CALLS if is_held else calls


def carry_out_request(
    snapshot: Snapshot,
    agent: Agent,
    completion: Completion,
    lease: Lease,
    *,
    round_number: int,
    of_program: Collection[str],
) -> Held | Snapshot | list[ToolCall]:
    """Record the tool calls of the language model.

    Args:
        snapshot: the message.
        agent: the agent that requests them.
        completion: the answer with the calls.
        lease: of the reply.
        round_number: the round of tool calls.
        of_program: names of the tools of the program that sent the message.

    Returns:
        That the message is held; or a new snapshot, if the thread was handed over; or the message's
        tool calls, for the next request to the language model.

    Raises:
        LeaseLost: another worker has the message. Nothing was written.
    """
    message = snapshot.message
    with lease.transaction():
        if any(call.name in handovers.NAMES for call in completion.requested):
            is_decided_anew = handovers.follow(
                message, agent, completion, round_number=round_number
            )
        else:
            is_decided_anew = False
            if tool_calls.record(
                message, agent, completion, round_number=round_number, of_program=of_program
            ):
                return Held.FOR_CALLS
    if is_decided_anew:
        return read(message)
    return list(ToolCall.objects.of_message(message.id))


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
    reply = draft if isinstance(draft, Message) else record_draft(snapshot, draft, lease)
    if reply is None:
        return
    append_to_window(message, reply)
    has_options = bool(snapshot.options or snapshot.instructions)
    agents = [agent for agent in (snapshot.own, snapshot.guest) if agent is not None]
    extracting = {agent.id for agent in agents if agent.extracts_facts}
    finish(message, reply, lease, has_options=has_options, extracting=extracting)
    if (guest := guest_of(reply)) is not None:
        append_copies(message, reply, guest)


def record_draft(snapshot: Snapshot, draft: Draft, lease: Lease) -> Message | None:
    """Record the reply; None if the thread is no longer the agent's.

    During the request to the language model, a person may have taken the thread, it may have been
    handed to another agent, and the message may have been merged into another user's history.
    """
    message = snapshot.message
    with locked_windows([snapshot.thread], lease):
        if not _has_same_owner(message):
            queue.REPLIES.cancel_attempt(message.id)
            return None  # it is answered again in its new thread
        if draft.prompt is not None:
            answering = who_answers(snapshot.thread)
            is_person = answering is not None and answering.is_person
            if is_person and escalations.hold_for_person(message):
                return None
            if draft.agent.id != ((answering and answering.agent_id) or message.agent_id):
                queue.REPLIES.cancel_attempt(message.id)
                return None  # the other agent answers it
        return record_reply(message, draft)


def _has_same_owner(message: KonstructMessage) -> bool:
    user_id = Message.objects.filter(pk=message.id).values_list("user_id", flat=True).first()
    if user_id is None:
        raise MessageNotFound(f"No user's message has the id {message.id}.")
    return user_id == message.user_id


def record_reply(message: KonstructMessage, draft: Draft) -> Message:
    """Write the reply and its recall trace, or return the reply that another worker wrote first."""
    reply, is_new = transcript.record_message(
        tenant_id=message.tenant_id,
        agent_id=message.agent_id,
        user_id=message.user_id,
        thread_id=message.thread_id,
        channel=message.channel,
        role=Role.ASSISTANT,
        name=draft.agent.name,
        content=introduced(message, draft),
        in_reply_to=message.id,
        answered_by=draft.agent.id,
        recall_trace=None if draft.prompt is None else draft.prompt.trace(),
        usage=draft.usage,
        finish_reason=draft.finish_reason,
        appended=True,
    )
    thread_turns.note(reply)
    if is_new:
        usage.count(replies=1, memories=1)
    return reply


def introduced(message: KonstructMessage, draft: Draft) -> str:
    """Return the reply; in another's thread, an agent's first reply begins with its name."""
    if draft.agent.id == message.agent_id or handovers.answered_last(message, draft.agent):
        return draft.content
    return f"{INTRODUCTION.format(name=draft.agent.name)}\n\n{draft.content}"


def append_to_window(message: KonstructMessage, reply: Message) -> None:
    """Append both turns to the window, once, however often it is called."""
    asked = Turn(
        role=Role.USER,
        content=message.content,
        message_id=str(message.id),
        name=message.name,
        at=message.created_at.isoformat() if message.created_at else "",
    )
    short_term.append_turns(
        message.tenant_id, message.agent_id, message.user_id, [asked, Turn.of(reply)]
    )


def finish(
    message: KonstructMessage,
    reply: Message,
    lease: Lease,
    *,
    has_options: bool = False,
    extracting: Collection[UUID] = (),
) -> None:
    """Remove the job of the reply, and enqueue the embedding of both turns and the extraction.

    An agent that answered in another's thread remembers the exchange by its own copies.

    Args:
        message: the user's message.
        reply: the reply.
        lease: of the reply.
        has_options: whether the message has AnswerOptions.
        extracting: the agents, of those that remember the exchange, that extract facts.

    Raises:
        LeaseLost: another worker has the message. Nothing was written.
    """
    with transaction.atomic():
        lease.finish()
        if has_options:
            AnswerOptions.objects.filter(pk=message.id).delete()
        delivery_hooks.changed(message)
        turns, threads = [str(message.id), str(reply.id)], [Thread.of(message)]
        if (agent_id := guest_of(reply)) is not None:
            copies = copy_for_agent([message.id, reply.id], agent_id)
            turns += [str(copy.id) for copy in copies]
            threads.append(replace(threads[0], agent_id=agent_id))
        wanted = [thread for thread in threads if thread.agent_id in extracting]
        enqueue_extraction(message.tenant_id, wanted)
        task = memory_tasks.embed_and_store
        transaction.on_commit(partial(enqueue_task, task, str(message.tenant_id), turns))


def append_copies(message: KonstructMessage, reply: Message, agent_id: UUID) -> None:
    """Append the copies of the exchange to the window of an agent that answered as a guest.

    A worker that is killed before it leaves a gap, which the next turn of that window finds.
    """
    ids = [copy_id(message.id, agent_id), copy_id(reply.id, agent_id)]
    copies = Message.objects.filter(pk__in=ids).order_by("created_at", "number")
    turns = [Turn.of(copy) for copy in copies]
    short_term.append_turns(message.tenant_id, agent_id, message.user_id, turns)


def guest_of(reply: Message) -> UUID | None:
    """Return the agent that wrote the reply, if the thread is another's."""
    return None if reply.answered_by_id == reply.agent_id else reply.answered_by_id


# --- No reply -------------------------------------------------------------------------------------


def record_failure(message: KonstructMessage, error: Exception) -> bool:
    """Record a failed attempt; open an escalation if the agent's rule requires one now.

    Call it in a transaction of the lease. Return whether the reply has failed permanently.
    """
    given_up = queue.REPLIES.record_failure(message.id, error)
    if given_up and escalations.reached_failure_limit(message):
        escalations.open_escalation(
            Thread.of(message),
            opened_by=OpenedBy.RULE,
            reason=f"The agent could not answer: {reason_of(error)}",
            channel=message.channel,
            message_id=message.id,
        )
        # The reply of that message announces a person, which needs no language model.
        queue.retry(message.id)
    delivery_hooks.changed(message)
    return given_up
