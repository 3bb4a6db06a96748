"""Escalations: threads in which a person answers, from when one is asked for until it is resolved.

While one is open the agent does not answer there. What the user says is recorded, remembered and
held; a person answers it in the admin, and resolves the escalation in the end.
"""

from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from konstruct.orchestrator import holds, outbox, outlets, thread_cache
from konstruct.orchestrator.asking_for_people import asks_for_a_person, phrase_in
from konstruct.orchestrator.exceptions import (
    EscalationNotFound,
    EscalationOver,
    NothingToEscalate,
)
from konstruct.orchestrator.locks import window_lock
from konstruct.orchestrator.messages import KonstructMessage, konstruct_message
from konstruct.orchestrator.models import Agent, Escalation, HeldFor, PendingReply
from memory import short_term, transcript
from memory.arguments import id_argument, text_argument
from memory.exceptions import InvalidArgument
from memory.models import Message, Role
from memory.scopes import scope_number
from memory.turns import Turn
from tenants.context import required_tenant_id
from tenants.redis_keys import escalation_status_key, escape_part

NOTICE = "I have asked for a person: somebody will answer you here."
OpenedBy = Escalation.OpenedBy


@dataclass(frozen=True, slots=True)
class Thread:
    """One conversation of an agent with a user."""

    agent_id: UUID
    user_id: str
    thread_id: str

    @classmethod
    def of(cls, row: "KonstructMessage | Message | Escalation") -> "Thread":
        """The thread of a message, or of an escalation."""
        return cls(row.agent_id, row.user_id, row.thread_id)

    @property
    def named(self) -> dict[str, UUID | str]:
        """For filters."""
        return {"agent_id": self.agent_id, "user_id": self.user_id, "thread_id": self.thread_id}


# --- Asking ---------------------------------------------------------------------------------------


def is_open(thread: Thread) -> bool:
    """Whether a person answers in this thread of the tenant that we are in."""
    return _standing(thread) is not None


def asked_by(message: KonstructMessage) -> bool:
    """Whether the open escalation of the message's thread is the one that it asked for itself."""
    return _standing(Thread.of(message)) == str(message.id)


def reason_to_escalate(message: KonstructMessage, agent: Agent) -> tuple[OpenedBy, str] | None:
    """Return on whose account the message calls for a person, and why; None if it does not.

    What was said before a person resolved an escalation of the thread was seen by that person.
    """
    if asks_for_a_person(message.content):
        why = OpenedBy.USER, f"“{message.content.strip()}”"
    elif (phrase := phrase_in(message.content, agent.escalate_on)) is not None:
        why = OpenedBy.RULE, f"The message says {phrase!r}."
    else:
        return None
    seen = Escalation.objects.filter(
        **Thread.of(message).named, resolved_at__gte=message.created_at
    )
    return None if seen.exists() else why


def is_past_bearing(message: KonstructMessage) -> bool:
    """Whether as many replies in a row were given up in the thread as the agent's rule allows.

    Call it when the message's own was given up.
    """
    limit = (
        Agent.objects.filter(pk=message.agent_id)
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
    person will answer. An escalation that is open already is returned as it stands.

    Raises:
        NothingToEscalate: nothing was said in this thread.
        InvalidArgument: a text cannot be stored.
    """
    text_argument("reason", reason)
    id_argument("thread_id", thread.thread_id)
    with transaction.atomic():
        _is_changing(thread)
        if not channel:
            channel = _channel_of(thread)
        escalation, is_new = Escalation.objects.get_or_create(
            **thread.named,
            resolved_at=None,
            defaults={
                "channel": channel,
                "message_id": message_id,
                "opened_by": opened_by,
                "opened_by_name": name,
                "reason": reason,
            },
        )
        if is_new:
            for pending in _waiting_in(thread).exclude(pk=message_id):
                holds.hold(konstruct_message(pending.message), HeldFor.PERSON)
    return escalation, is_new


def hold_if_open(message: KonstructMessage) -> bool:
    """Hold the message for whoever answers in its thread; False if nobody does (any more).

    Under the lock that `resolve` takes: what is held here is found there.
    """
    with transaction.atomic():
        rows = Escalation.objects.select_for_update().open().filter(**Thread.of(message).named)
        if rows.first() is None:
            return False
        holds.hold(message, HeldFor.PERSON)
    return True


def resolve(escalation_id: UUID, *, by: str, let_agent_answer: bool, note: str = "") -> Escalation:
    """End the escalation, and let the agent answer in the thread again.

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
        _is_changing(thread)
        for pending in held_in(thread):
            message = konstruct_message(pending.message)
            if let_agent_answer:
                holds.release(message)
            else:
                holds.close(message, f"Taken care of by a person: {by}.")
        escalation.resolved_at, escalation.resolved_by, escalation.note = Now(), by, note
        escalation.save(update_fields=["resolved_at", "resolved_by", "note"])
    escalation.refresh_from_db()
    return escalation


def held_in(thread: Thread) -> list[PendingReply]:
    """What waits for a person in the thread, oldest first, each with its message."""
    return list(
        PendingReply.objects.held(HeldFor.PERSON)
        .in_thread(**thread.named)  # type: ignore[arg-type]  # the three names of a thread
        .select_related("message")
    )


# --- A person answers -----------------------------------------------------------------------------


def answer_as_person(escalation_id: UUID, content: str, *, name: str) -> Message:
    """Say something in the escalated thread as a person; the turn that was written.

    It is the reply to the newest message that waits there, and what waited before is closed with
    it; where nothing waits it is a turn of its own. It goes the way of every reply: to the channel,
    into the window, and into memory.

    Raises:
        InvalidArgument: the text says nothing, or cannot be stored.
        EscalationNotFound: there is no such escalation.
        EscalationOver: it is resolved already.
    """
    if not text_argument("content", content).strip():
        raise InvalidArgument("content='' says nothing: write what the user is to read")
    text_argument("name", name)
    last = _last_said(_found(escalation_id))
    with window_lock(last):
        with transaction.atomic():
            escalation = _locked(escalation_id)
            earlier = held_in(Thread.of(escalation))
            newest = earlier.pop() if earlier else None
            asked = None if newest is None else konstruct_message(newest.message)
            turn = _record(escalation, content, name=name, asked=asked)
            if asked is not None:
                outbox.finish(asked.id)
                holds.tell(asked)
            else:
                outlets.said(turn, after=last)
            for each in earlier:
                reason = f"Answered by {name} together with a later message."
                holds.close(konstruct_message(each.message), reason)
        turns = [] if newest is None else [Turn.of(newest.message)]
        short_term.append_turns(
            turn.tenant_id, turn.agent_id, turn.user_id, [*turns, Turn.of(turn)]
        )
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
    )
    return turn


def _last_said(escalation: Escalation) -> KonstructMessage:
    """The user's last message of the thread: where an answer belongs."""
    said = Message.objects.filter(**Thread.of(escalation).named, role=Role.USER)
    last = said.order_by("-number").first()
    if last is None:
        raise NothingToEscalate("Nothing of what was said in this thread is kept any more.")
    return konstruct_message(last)


# --- Inside ---------------------------------------------------------------------------------------


def _standing(thread: Thread) -> str | None:
    """The message that asked for the open escalation ('' for none); None without an escalation."""
    key = escalation_status_key(required_tenant_id(), escape_part(thread.thread_id))
    scope = str(scope_number(thread.agent_id, thread.user_id))
    return thread_cache.read_through(key, partial(_open_in, thread.thread_id)).get(scope)


def _open_in(thread_id: str) -> thread_cache.Copy:
    rows = Escalation.objects.open().filter(thread_id=thread_id)
    return {
        str(scope_number(agent_id, user_id)): str(message_id or "")
        for agent_id, user_id, message_id in rows.values_list("agent_id", "user_id", "message_id")
    }


def _is_changing(thread: Thread) -> None:
    thread_cache.changing(
        escalation_status_key(required_tenant_id(), escape_part(thread.thread_id))
    )


def _channel_of(thread: Thread) -> str:
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
