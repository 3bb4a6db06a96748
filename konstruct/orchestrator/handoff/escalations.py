"""Escalations to people: a person answers, from when one is asked for until it is resolved.

While one is open the agent does not answer there. What the user says is recorded, remembered and
held; a person answers it in the admin, and resolves the escalation in the end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.db import IntegrityError
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from konstruct.orchestrator import thread_cache
from konstruct.orchestrator.exceptions import (
    Busy,
    EscalationNotFound,
    EscalationOver,
    NothingToEscalate,
    WithAnotherAgent,
)
from konstruct.orchestrator.extraction import queue as extraction_queue
from konstruct.orchestrator.handoff import thread_turns
from konstruct.orchestrator.handoff.detection import asks_for_a_person, phrase_in
from konstruct.orchestrator.messages import (
    KonstructMessage,
    Thread,
    konstruct_message,
    locked_windows,
)
from konstruct.orchestrator.models import Agent, Escalation, HeldFor, PendingReply
from konstruct.orchestrator.replies import delivery_hooks, queue
from memory import short_term
from memory.arguments import id_argument, text_argument
from memory.conversations import transcript
from memory.conversations.reading import Turn
from memory.exceptions import InvalidArgument
from memory.models import Message, Role
from memory.scopes import scope_number
from tenants import transaction
from tenants.context import required_tenant_id
from tenants.redis_keys import escalation_status_key

NOTICE = "I have asked for a person: somebody will answer you here."
OpenedBy = Escalation.OpenedBy
Outcome = Escalation.Outcome
# The constraint by which one of two that open something in a thread at once is first.
ONE_OPEN = "escalation_one_open"
# How often a request tries again because others changed the thread's escalations or handovers.
MAX_ATTEMPTS = 10
# In the copy: "person", and the message that asked for them; or "agent", and the agent's id.
PERSON, AGENT = "person", "agent"


@dataclass(frozen=True, slots=True)
class Answering:
    """Who answers instead of the thread's own agent."""

    agent_id: UUID | None = None
    """Another agent; None: a person."""
    asked_by: str = ""
    """The message that asked for the person, if one did."""

    @property
    def is_person(self) -> bool:
        """Whether a person answers."""
        return self.agent_id is None


def who_answers(thread: Thread) -> Answering | None:
    """Who answers in this thread of the tenant that we are in; None: its own agent."""
    key = escalation_status_key(required_tenant_id(), thread.thread_id)
    scope = str(scope_number(thread.agent_id, thread.user_id))
    held = thread_cache.read_through(key, partial(_open_in, thread.thread_id)).get(scope)
    if held is None:
        return None
    kind, _, found = held.partition(" ")
    return Answering(agent_id=UUID(found)) if kind == AGENT else Answering(asked_by=found)


def mark_changing(thread: Thread) -> None:
    """Let nobody trust the copy until the transaction is over. Call it before the change."""
    thread_cache.changing(escalation_status_key(required_tenant_id(), thread.thread_id))


def _open_in(thread_id: str) -> thread_cache.Copy:
    rows = Escalation.objects.open().filter(thread_id=thread_id)
    return {
        str(scope_number(agent_id, user_id)): f"{AGENT} {to_agent_id}"
        if to_agent_id
        else f"{PERSON} {message_id or ''}".strip()
        for agent_id, user_id, to_agent_id, message_id in rows.values_list(
            "agent_id", "user_id", "to_agent_id", "message_id"
        )
    }


# --- Asking ---------------------------------------------------------------------------------------


def reason_to_escalate(text: str, agent: Agent) -> tuple[OpenedBy, str] | None:
    """Return on whose account the text calls for a person, and why; None if it does not."""
    if asks_for_a_person(text):
        return OpenedBy.USER, f"“{text.strip()}”"
    if (phrase := phrase_in(text, agent.escalate_on)) is not None:
        return OpenedBy.RULE, f"The message says {phrase!r}."
    return None


def reached_failure_limit(message: KonstructMessage) -> bool:
    """Whether as many replies in a row were given up in the thread as the agent's rule allows.

    The rule is of the agent that answers there. Call it when the message's own was given up.
    """
    existing = who_answers(Thread.of(message))
    limit = (
        Agent.objects.filter(pk=(existing and existing.agent_id) or message.agent_id)
        .values_list("escalate_after_failures", flat=True)
        .first()
    )
    if limit is None:
        return False
    said = Message.objects.filter(**Thread.of(message).named, role=Role.USER)
    # What a person has closed was not tried.
    given_up = Q(pending_reply__failed_at__isnull=False, pending_reply__attempts__gt=0)
    newest = said.order_by("-number").annotate(was_given_up=given_up)[:limit]
    return [message.was_given_up for message in newest] == [True] * limit


# --- Opening and ending ---------------------------------------------------------------------------


def open_escalation(
    thread: Thread,
    *,
    opened_by: OpenedBy,
    reason: str,
    name: str = "",
    channel: str = "",
    message_id: UUID | None = None,
) -> tuple[Escalation, bool]:
    """Let a person answer in the thread from now on; the escalation, and whether it is new.

    What waits for its reply there is held, but for the message that asked: its reply says that a
    person will answer. A person's escalation that is open already is returned as it stands; where
    another agent has the thread, that ends.

    Raises:
        NothingToEscalate: nothing was said in this thread.
        InvalidArgument: a text cannot be stored.
        Busy: others opened and ended something in the thread MAX_ATTEMPTS times meanwhile.
    """
    text_argument("reason", reason)
    id_argument("thread_id", thread.thread_id)
    with transaction.atomic():
        mark_changing(thread)
        if not channel:
            channel = channel_of(thread)
        for _ in range(MAX_ATTEMPTS):
            existing = open_in(thread)
            if existing is not None and existing.to_agent_id is None:
                return existing, False
            escalation = replace_open(
                existing,
                Outcome.TO_PERSON,
                by=name or OpenedBy(opened_by).label,
                **thread.named,
                channel=channel,
                message_id=message_id,
                opened_by=opened_by,
                opened_by_name=name,
                reason=reason,
            )
            if escalation is not None:
                break
        else:
            raise overtaken(thread)
        for pending in _waiting_in(thread).exclude(pk=message_id):
            # One that a worker finishes at this moment is answered, and not held.
            queue.hold(konstruct_message(pending.message), HeldFor.PERSON)
    return escalation, True


def open_in(thread: Thread) -> Escalation | None:
    """What is open in the thread, locked until the transaction ends."""
    return Escalation.objects.select_for_update().open().filter(**thread.named).first()


def replace_open(
    existing: Escalation | None, outcome: Outcome, *, by: str, **fields: Any
) -> Escalation | None:
    """Open something new in the place of what stands; None if somebody else was first.

    In the caller's transaction, which looks again then.
    """
    try:
        with transaction.atomic():
            if existing is not None:
                end(existing, outcome, by=by)
            return Escalation.objects.create(**fields)
    except IntegrityError as error:
        if ONE_OPEN not in str(error):
            raise
        return None


def overtaken(thread: Thread) -> Busy:
    """The error for a caller that others overtook MAX_ATTEMPTS times."""
    return Busy(
        f"Others opened and ended an escalation or a handover in thread {thread.thread_id!r}"
        f" {MAX_ATTEMPTS} times during this request: try again."
    )


def hold_for_person(message: KonstructMessage) -> bool:
    """Hold the message for whoever answers in its thread; False if nobody does (any more).

    Under the lock that `resolve` takes: what is held here is found there.
    """
    with transaction.atomic():
        rows = Escalation.objects.select_for_update().open().to_people()
        if rows.filter(**Thread.of(message).named).first() is None:
            return False
        queue.hold(message, HeldFor.PERSON)
    return True


def resolve(escalation_id: UUID, *, by: str, let_agent_answer: bool, note: str = "") -> Escalation:
    """End the escalation or handover, and let the thread's own agent answer again.

    Args:
        by: who resolves it.
        let_agent_answer: what waits is answered by the agent; otherwise it is closed, as taken care
            of by a person.
        note: what came of it, for the record.

    Raises:
        EscalationNotFound: there is none of this id.
        EscalationOver: it is resolved already.
    """
    text_argument("note", note)
    with transaction.atomic():
        escalation = _locked(escalation_id)
        thread = Thread.of(escalation)
        mark_changing(thread)
        for pending in held_in(thread):
            message = konstruct_message(pending.message)
            if let_agent_answer:
                queue.release(message)
            else:
                queue.close(message, f"Taken care of by a person: {by}.")
        end(escalation, Outcome.RESOLVED, by=by, note=note)
    escalation.refresh_from_db()
    return escalation


def end(escalation: Escalation, outcome: Outcome, *, by: str, note: str = "") -> None:
    """Close the row. In the caller's transaction, which holds its lock."""
    escalation.resolved_at, escalation.resolved_by = Now(), by
    escalation.outcome, escalation.note = outcome, note
    escalation.save(update_fields=["resolved_at", "resolved_by", "outcome", "note"])


def held_in(thread: Thread) -> list[PendingReply]:
    """What waits for a person in the thread, oldest first, each with its message."""
    return list(
        PendingReply.objects.held(HeldFor.PERSON)
        .in_thread(**thread.named)  # type: ignore[arg-type]  # the three names of a thread
        .select_related("message")
    )


# --- A person answers -----------------------------------------------------------------------------


def answer_as_person(
    escalation_id: UUID,
    content: str,
    *,
    name: str,
    on_change: Callable[[Message], object] = lambda turn: None,
) -> Message:
    """Say something in the escalated thread as a person; the turn that was written.

    It is the reply to the newest message that waits there, and what waited before is closed with
    it; where nothing waits it is a turn of its own. It goes the way of every reply: to the channel,
    into the window, and into memory. `on_change` is called with it in the same transaction.

    Raises:
        InvalidArgument: the text says nothing, or cannot be stored.
        EscalationNotFound: there is no such escalation.
        EscalationOver: it is resolved already.
        WithAnotherAgent: an agent answers there.
    """
    if not text_argument("content", content).strip():
        raise InvalidArgument("content='' says nothing: write what the user is to read")
    text_argument("name", name)
    last = _last_said(_found(escalation_id))
    with locked_windows([Thread.of(last)]):
        escalation = _locked(escalation_id)
        if escalation.to_agent_id is not None:
            raise WithAnotherAgent(
                "Another agent answers in this thread. Let a person answer there first."
            )
        earlier = held_in(Thread.of(escalation))
        newest = earlier.pop() if earlier else None
        asked = None if newest is None else konstruct_message(newest.message)
        turn = _record(escalation, content, name=name, asked=asked)
        if asked is not None:
            queue.REPLIES.finish(asked.id)
            queue.announce_change(asked)
        else:
            delivery_hooks.said(turn, after=last)
        for each in earlier:
            reason = f"Answered by {name} together with a later message."
            queue.close(konstruct_message(each.message), reason)
        extraction_queue.enqueue(turn.tenant_id, [Thread.of(turn)])
        on_change(turn)
    turns = [] if newest is None else [Turn.of(newest.message)]
    short_term.append_turns(turn.tenant_id, turn.agent_id, turn.user_id, [*turns, Turn.of(turn)])
    return turn


def _record(
    escalation: Escalation, content: str, *, name: str, asked: KonstructMessage | None
) -> Message:
    turn, _ = transcript.record_message(
        tenant_id=required_tenant_id(),
        **Thread.of(escalation).named,  # type: ignore[arg-type]  # the three names of a thread
        channel=escalation.channel if asked is None else asked.channel,
        role=Role.ASSISTANT,
        name=name,
        content=content,
        in_reply_to=None if asked is None else asked.id,
        appended=True,
    )
    thread_turns.note(turn)
    return turn


def _last_said(escalation: Escalation) -> KonstructMessage:
    """The user's last message of the thread: where an answer belongs."""
    said = Message.objects.filter(**Thread.of(escalation).named, role=Role.USER)
    last = said.order_by("-number").first()
    if last is None:
        raise NothingToEscalate("Nothing of what was said in this thread is kept any more.")
    return konstruct_message(last)


# --- Inside ---------------------------------------------------------------------------------------


def channel_of(thread: Thread) -> str:
    """The channel by which the user spoke last; raises NothingToEscalate if they never did."""
    said = Message.objects.filter(**thread.named, role=Role.USER).order_by("-number")
    channel = said.values_list("channel", flat=True).first()
    if channel is None:
        raise NothingToEscalate(
            f"{thread.user_id!r} has said nothing to this agent in thread {thread.thread_id!r}."
        )
    return channel


def _waiting_in(thread: Thread) -> QuerySet[PendingReply]:
    waiting_now = PendingReply.objects.waiting().select_related("message")
    return waiting_now.in_thread(**thread.named)  # type: ignore[arg-type]


def _found(escalation_id: UUID) -> Escalation:
    found = Escalation.objects.filter(pk=escalation_id).first()
    if found is None:
        raise EscalationNotFound(f"No escalation has the id {escalation_id}.")
    return found


def _locked(escalation_id: UUID) -> Escalation:
    escalation = Escalation.objects.select_for_update().filter(pk=escalation_id).first()
    if escalation is None:
        raise EscalationNotFound(f"No escalation has the id {escalation_id}.")
    if escalation.resolved_at is not None:
        raise EscalationOver(
            f"This escalation was resolved by {escalation.resolved_by} at"
            f" {escalation.resolved_at:%Y-%m-%d %H:%M}."
        )
    return escalation
