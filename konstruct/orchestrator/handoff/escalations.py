"""Escalations to people: a person answers in a thread until the escalation is resolved.

While an escalation is open, the agent does not answer in the thread. Messages of the user are
stored, remembered and held. A person answers them in the admin and resolves the escalation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
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
from konstruct.orchestrator.notifications import notify
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
# Members of the team with this permission, by its backend, may answer.
ANSWER = "orchestrator.change_escalation"
BACKEND = "django.contrib.auth.backends.ModelBackend"
# The constraint by which a thread has at most one open escalation.
ONE_OPEN = "escalation_one_open"
# How often a request is repeated after concurrent changes of the thread's escalation.
MAX_ATTEMPTS = 10
# Values in the cache: "person" with the id of the message that asked, or "agent" with its id.
PERSON, AGENT = "person", "agent"


@dataclass(frozen=True, slots=True)
class Answering:
    """The person or agent that answers instead of the thread's own agent."""

    agent_id: UUID | None = None
    """The other agent; None: a person."""
    asked_by: str = ""
    """The id of the message that asked for a person, if there is one."""

    @property
    def is_person(self) -> bool:
        """Whether a person answers."""
        return self.agent_id is None


def who_answers(thread: Thread) -> Answering | None:
    """Return the person or agent that answers in the thread; None: the thread's own agent."""
    key = escalation_status_key(required_tenant_id(), thread.thread_id)
    scope = str(scope_number(thread.agent_id, thread.user_id))
    held = thread_cache.read_through(key, partial(_open_in, thread.thread_id)).get(scope)
    if held is None:
        return None
    kind, _, found = held.partition(" ")
    return Answering(agent_id=UUID(found)) if kind == AGENT else Answering(asked_by=found)


def mark_changing(thread: Thread) -> None:
    """Invalidate the cached state until the transaction ends. Call it before the change."""
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


# --- Reasons to escalate --------------------------------------------------------------------------


def reason_to_escalate(text: str, agent: Agent) -> tuple[OpenedBy, str] | None:
    """Return whether the user or a rule asks for a person, with the reason; None for neither."""
    if asks_for_a_person(text):
        return OpenedBy.USER, f"“{text.strip()}”"
    if (phrase := phrase_in(text, agent.escalate_on)) is not None:
        return OpenedBy.RULE, f"The message says {phrase!r}."
    return None


def reached_failure_limit(message: KonstructMessage) -> bool:
    """Return whether `escalate_after_failures` replies of the thread failed one after another.

    The setting is that of the agent that answers in the thread. Call it after the message's own
    reply has failed.
    """
    existing = who_answers(Thread.of(message))
    limit = (
        Agent.objects.filter(pk=(existing and existing.agent_id) or message.agent_id)
        .values_list("escalate_after_failures", flat=True)
        .first()
    )
    if limit is None:
        return False
    sent = Message.objects.filter(**Thread.of(message).named, role=Role.USER)
    # A message that a person closed has no attempts.
    has_failed = Q(pending_reply__failed_at__isnull=False, pending_reply__attempts__gt=0)
    newest = sent.order_by("-number").annotate(has_failed=has_failed)[:limit]
    return [message.has_failed for message in newest] == [True] * limit


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
    """Escalate the thread to a person.

    Messages that wait for a reply are held, except `message_id`, whose reply says that a person
    will answer. A handover to another agent ends.

    Args:
        thread: the thread.
        opened_by: the user, a rule, an agent, a program or a person.
        reason: the reason, for the record.
        name: the name of the program or person.
        channel: the channel of the thread; by default that of the user's last message.
        message_id: the message that asked for a person.

    Returns:
        The escalation, and whether it is new. An open escalation is returned unchanged.

    Raises:
        NothingToEscalate: the user has no message in this thread.
        InvalidArgument: a text cannot be stored.
        Busy: other requests changed the thread's escalation MAX_ATTEMPTS times meanwhile.
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
            raise busy_after_conflicts(thread)
        for pending in _waiting_in(thread).exclude(pk=message_id):
            # A message that a worker answers at this moment is not held.
            queue.hold(konstruct_message(pending.message), HeldFor.PERSON)
        notify(escalation.pk)
    return escalation, True


def open_in(thread: Thread) -> Escalation | None:
    """Return the thread's open escalation or handover, locked until the transaction ends."""
    return Escalation.objects.select_for_update().open().filter(**thread.named).first()


def replace_open(
    existing: Escalation | None, outcome: Outcome, *, by: str, **fields: Any
) -> Escalation | None:
    """End the open escalation and create the next one, in the caller's transaction.

    Returns:
        The new escalation; None if another request created one first. The caller reads again then.
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


def busy_after_conflicts(thread: Thread) -> Busy:
    """Return the error after MAX_ATTEMPTS conflicts with other requests."""
    return Busy(
        f"Others opened and ended an escalation or a handover in thread {thread.thread_id!r}"
        f" {MAX_ATTEMPTS} times during this request: try again."
    )


def hold_for_person(message: KonstructMessage) -> bool:
    """Hold the message for a person; return False if no escalation is open in its thread.

    It takes the lock that `resolve` takes, which therefore finds the held message.
    """
    with transaction.atomic():
        rows = Escalation.objects.select_for_update().open().to_people()
        escalation = rows.filter(**Thread.of(message).named).first()
        if escalation is None:
            return False
        queue.hold(message, HeldFor.PERSON)
        notify(escalation.pk)
    return True


def resolve(escalation_id: UUID, *, by: str, let_agent_answer: bool, note: str = "") -> Escalation:
    """End the escalation or handover. The thread's own agent answers again.

    Args:
        escalation_id: the escalation.
        by: the person or program that resolves it.
        let_agent_answer: True: the agent answers the held messages. False: they are closed, because
            a person has handled them.
        note: the result, for the record.

    Raises:
        EscalationNotFound: no escalation has this id.
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


def colleagues() -> QuerySet[User]:
    """Return the members of the team who may answer escalations, by name."""
    people = User.objects.with_perm(ANSWER, backend=BACKEND)
    return people.filter(is_active=True, is_staff=True).order_by("username")


def assign(escalation_id: UUID, *, to: str) -> Escalation:
    """Assign an open escalation to a member of the team.

    Args:
        escalation_id: the escalation.
        to: the username; empty: unassigned.

    Raises:
        InvalidArgument: no member of the team who may answer has this name.
        EscalationNotFound: no escalation has this id.
        EscalationOver: it is resolved already.
    """
    if text_argument("to", to) and not colleagues().filter(username=to).exists():
        raise InvalidArgument(
            f"{to[:80]!r} is not a member of the team who may answer escalations."
        )
    with transaction.atomic():
        escalation = _locked(escalation_id)
        escalation.assigned_to = to
        escalation.save(update_fields=["assigned_to"])
    return escalation


def end(escalation: Escalation, outcome: Outcome, *, by: str, note: str = "") -> None:
    """Close the row in the caller's transaction, which has locked it."""
    escalation.resolved_at, escalation.resolved_by = Now(), by
    escalation.outcome, escalation.note = outcome, note
    escalation.save(update_fields=["resolved_at", "resolved_by", "outcome", "note"])


def held_in(thread: Thread) -> list[PendingReply]:
    """Return the replies that wait for a person in the thread, oldest first, with messages."""
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
    idempotency_key: str | None = None,
    on_change: Callable[[Message], object] = lambda turn: None,
) -> Message:
    """Write a person's answer into the escalated thread, and return its message.

    It is the reply to the newest held message, and closes the earlier ones. Without a held message
    it is a message of its own. Like every reply it goes to the channel, the window and memory.

    Args:
        escalation_id: the escalation.
        content: the text.
        name: the person's name.
        idempotency_key: an answer with a key that an earlier one has is not written again.
        on_change: called with the message in the same transaction.

    Raises:
        InvalidArgument: the text is blank, or cannot be stored.
        EscalationNotFound: there is no such escalation.
        EscalationOver: it is resolved already.
        WithAnotherAgent: another agent answers in the thread.
    """
    if not text_argument("content", content).strip():
        raise InvalidArgument("content='' is blank: write the answer for the user")
    text_argument("name", name)
    last = _last_message(_found(escalation_id))
    with locked_windows([Thread.of(last)]):
        escalation = _locked(escalation_id)
        if escalation.to_agent_id is not None:
            raise WithAnotherAgent(
                "Another agent answers in this thread. Let a person answer there first."
            )
        given = Message.objects.filter(
            **Thread.of(escalation).named, idempotency_key=idempotency_key
        )
        if idempotency_key is not None and (existing := given.first()) is not None:
            return existing
        earlier = held_in(Thread.of(escalation))
        newest = earlier.pop() if earlier else None
        asked = None if newest is None else konstruct_message(newest.message)
        turn = _record(escalation, content, name=name, asked=asked, idempotency_key=idempotency_key)
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
    escalation: Escalation,
    content: str,
    *,
    name: str,
    asked: KonstructMessage | None,
    idempotency_key: str | None,
) -> Message:
    turn, _ = transcript.record_message(
        tenant_id=required_tenant_id(),
        **Thread.of(escalation).named,  # type: ignore[arg-type]  # the three names of a thread
        channel=escalation.channel if asked is None else asked.channel,
        role=Role.ASSISTANT,
        name=name,
        content=content,
        in_reply_to=None if asked is None else asked.id,
        idempotency_key=idempotency_key,
        appended=True,
    )
    thread_turns.note(turn)
    return turn


def _last_message(escalation: Escalation) -> KonstructMessage:
    """Return the user's last message of the thread, which an answer follows."""
    said = Message.objects.filter(**Thread.of(escalation).named, role=Role.USER)
    last = said.order_by("-number").first()
    if last is None:
        raise NothingToEscalate("This thread has no messages any more.")
    return konstruct_message(last)


# --- Inside ---------------------------------------------------------------------------------------


def channel_of(thread: Thread) -> str:
    """Return the channel of the user's last message. Raises NothingToEscalate without one."""
    said = Message.objects.filter(**thread.named, role=Role.USER).order_by("-number")
    channel = said.values_list("channel", flat=True).first()
    if channel is None:
        raise NothingToEscalate(
            f"{thread.user_id!r} has sent no message to this agent in thread {thread.thread_id!r}."
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
