"""Escalations to people: a person answers in a thread until the escalation is resolved.

While an escalation is open, the agent does not answer in the thread. Messages of the user are
stored, remembered and held. A person answers them in the admin and resolves the escalation.

A user asks for a person with a message that is nothing but the request, with polite words around
it. A false positive would leave the user without an answer until a person comes.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import JSONObject, Now

from konstruct.orchestrator import exceptions, messages, replies
from konstruct.orchestrator.extraction import runs as extraction_queue
from konstruct.orchestrator.messages import KonstructMessage, Thread, ThreadState, konstruct_message
from konstruct.orchestrator.models import Agent, Escalation, HeldFor, PendingReply
from memory import arguments, models, short_term
from memory.conversations import transcript
from memory.conversations.window_store import Turn
from memory.exceptions import InvalidArgument
from memory.text.lexical import fold
from tenants import redis_keys, transaction
from tenants.context import execute, required_tenant_id
from tenants.outbox.events import record_event
from tenants.outbox.models import EventType

NOTICE = "I have asked for a person: somebody will answer you here."
OpenedBy = Escalation.OpenedBy
Outcome = Escalation.Outcome
# The permission to answer escalations, and the authentication backend that checks it.
ANSWER_PERMISSION = "orchestrator.change_escalation"
AUTH_BACKEND = "django.contrib.auth.backends.ModelBackend"


@dataclass(frozen=True, slots=True)
class EscalationState:
    """An open escalation or handover."""

    to_agent_id: UUID | None = None
    """The agent that answers; None if a person answers."""
    message_id: str = ""
    """The id of the message that caused an escalation to a person; "" if none did."""

    @property
    def is_to_person(self) -> bool:
        """Whether a person answers."""
        return self.to_agent_id is None

    @classmethod
    def of(cls, value: Mapping[str, str | None] | None) -> Self | None:
        """Return the state of the annotation `OPEN_ESCALATION` of a message."""
        if value is None:
            return None
        agent_id = value["to_agent_id"]
        return cls(None if agent_id is None else UUID(agent_id), value["message_id"] or "")


# An annotation of messages: the open escalation or handover of the thread.
OPEN_ESCALATION: Final = Subquery(
    Escalation.objects.open()
    .filter(**{name: OuterRef(name) for name in ("agent_id", "user_id", "thread_id")})
    .values(found=JSONObject(to_agent_id="to_agent_id", message_id="message_id"))[:1]
)


def current_escalation(thread: Thread) -> EscalationState | None:
    """Return the thread's open escalation or handover; None if there is none."""
    row = Escalation.objects.open().filter(**thread.as_filter)
    values = row.values_list("to_agent_id", "message_id").first()
    return None if values is None else EscalationState(values[0], str(values[1] or ""))


# The key of a thread has "person" with the id of the message that caused the escalation, or "agent"
# with the id of the agent.
ESCALATIONS: Final = ThreadState(
    redis_keys.escalation_status_key,
    lambda: Escalation.objects.open().only("agent_id", "user_id", "to_agent_id", "message_id"),
    lambda row: f"agent {row.to_agent_id}" if row.to_agent_id else f"person {row.message_id or ''}",
)


def write_key(thread: Thread) -> None:
    """Write the thread's escalation into the cache when the current transaction is committed."""
    ESCALATIONS.write_on_commit(required_tenant_id(), thread.thread_id)


# --- Reasons to escalate --------------------------------------------------------------------------


def reason_to_escalate(text: str, agent: Agent) -> tuple[OpenedBy, str] | None:
    """Return who asks for a person (the user, or a rule of the agent), and the reason; or None."""
    if asks_for_person(text):
        return OpenedBy.USER, f"“{text.strip()}”"
    if (phrase := find_phrase(text, agent.escalate_on)) is not None:
        return OpenedBy.RULE, f"The message says {phrase!r}."
    return None


def reached_failure_limit(message: KonstructMessage) -> bool:
    """Return whether the last `escalate_after_failures` replies of the thread failed.

    The limit is a setting of the agent that answers in the thread. Call it after the message's own
    reply has failed.
    """
    escalation = current_escalation(Thread.of(message))
    agent_id = (escalation and escalation.to_agent_id) or message.agent_id
    agents = Agent.objects.filter(pk=agent_id)
    limit = agents.values_list("escalate_after_failures", flat=True).first()
    if limit is None:
        return False
    sent = models.Message.objects.filter(**Thread.of(message).as_filter, role=models.Role.USER)
    # A message that a person closed has no attempts.
    has_failed = Q(pending_reply__failed_at__isnull=False, pending_reply__attempts__gt=0)
    newest = sent.order_by("-number").annotate(has_failed=has_failed)[:limit]
    return [message.has_failed for message in newest] == [True] * limit


# Longer messages are neither plain requests nor plain answers.
MAX_WORDS = 16
MAX_CHARACTERS = 500

_PERSON = (
    r"(?:(?:a|an|the|some)\s+)?(?:real\s+|live\s+|actual\s+|human\s+)*"
    r"(?:human(?:\s+being)?|person|people|someone|somebody|agent|operator|representative|employee"
    r"|colleague|member\s+of\s+(?:your\s+)?staff)(?:\s+(?:please|instead|here|now))*"
)
_MENSCH = (
    r"(?:(?:einem|einen|einer|eine|ein)\s+)?(?:echten?r?\s+|richtigen?r?\s+)*"
    r"(?:menschen?|person|mitarbeiter(?:in|s)?|kollegen|kollegin|berater(?:in)?)"
)
_HUMAIN = (
    r"(?:(?:un|une|a)\s+)?(?:vraie?\s+)?"
    r"(?:humain|personne(?:\s+(?:reelle|humaine))?|etre\s+humain|conseiller|conseillere|operateur)"
)
_PERSONA = (
    r"(?:(?:un|una|a\s+una|con\s+una)\s+)?(?:persona(?:\s+(?:real|humana|de\s+verdad))?|humano"
    r"|ser\s+humano|agente|operador|operadora|asesor)"
)
_REQUESTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:(?:can|could|may|might)\s+i\s+|(?:i\s+(?:want|need|wish|have|d\s+like|would\s+like)\s+to"
        rf"\s+)|let\s+me\s+|i\s+(?:d|would)\s+rather\s+|how\s+(?:can|do)\s+i\s+)?"
        rf"(?:talk|speak|chat)\s+(?:to|with)\s+{_PERSON}",
        rf"(?:(?:can|could|would|will)\s+you\s+)?(?:get|give|find|call|fetch)\s+(?:me\s+)?{_PERSON}",
        rf"(?:(?:can|could|would|will)\s+you\s+)?(?:connect|transfer|hand|forward|put)\s+me"
        rf"\s+(?:over\s+|through\s+)?(?:to|with)\s+{_PERSON}",
        rf"i\s+(?:want|need)\s+{_PERSON}",
        r"(?:please\s+)?(?:human|real\s+person|live\s+agent|human\s+agent|operator)",
        rf"(?:(?:ich\s+(?:mochte|moechte|will|muss|wurde\s+gern(?:e)?)|kann\s+ich|konnte\s+ich|lass"
        rf"\s+mich|darf\s+ich)\s+)?(?:gern(?:e)?\s+)?(?:bitte\s+)?mit\s+{_MENSCH}"
        rf"\s+(?:sprechen|reden|schreiben|chatten)",
        rf"(?:verbinde(?:n\s+sie)?\s+mich|verbinden)\s+(?:bitte\s+)?mit\s+{_MENSCH}",
        rf"(?:(?:je\s+(?:veux|voudrais|souhaite|dois)|puis\s+je|est\s+ce\s+que\s+je\s+peux"
        rf"|pourrais\s+je)\s+)?parler\s+(?:a|avec)\s+{_HUMAIN}",
        rf"passez\s+moi\s+{_HUMAIN}",
        rf"(?:(?:quiero|quisiera|necesito|puedo|podria|me\s+gustaria)\s+)?hablar\s+(?:con\s+)?"
        rf"{_PERSONA}",
    )
)
_POLITENESS = re.compile(
    r"\b(?:please|pls|hi|hello|hey|thanks|thank\s+you|now|again|ok|okay|no|sorry|bitte|danke|hallo"
    r"|jetzt|s\s+il\s+vous\s+plait|svp|merci|bonjour|maintenant|por\s+favor|gracias|hola|ahora)\b"
)


def asks_for_person(text: str) -> bool:
    """Return whether the message is a request for a person, and nothing else."""
    words = "" if len(text) > MAX_CHARACTERS else _normalize(text)
    if not words or len(words.split()) > MAX_WORDS:
        return False
    if any(request.fullmatch(words) for request in _REQUESTS):
        return True
    without_politeness = " ".join(_POLITENESS.sub(" ", words).split())
    return any(request.fullmatch(without_politeness) for request in _REQUESTS)


def find_phrase(text: str, phrases: Iterable[str]) -> str | None:
    """Return the first of the phrases that the text contains as whole words; None without one."""
    words = f" {_normalize(text)} "
    for phrase in phrases:
        wanted = _normalize(phrase)
        if wanted and f" {wanted} " in words:
            return phrase
    return None


_YES = frozenset(
    {
        "yes", "y", "yes please", "yep", "yeah", "sure", "ok", "okay", "go ahead", "do it",
        "please do", "yes do", "of course", "approve", "approved", "ja", "ja bitte", "gerne",
        "klar", "oui", "oui s il te plait", "oui s il vous plait", "d accord", "bien sur", "si",
        "si por favor", "claro", "vale", "sim", "da",
    }
)  # fmt: skip
_NO = frozenset(
    {
        "no", "n", "no thanks", "no thank you", "nope", "don t", "do not", "please don t",
        "better not", "never mind", "deny", "denied", "nein", "nein danke", "lieber nicht", "non",
        "non merci", "no gracias", "nao",
    }
)  # fmt: skip


def yes_or_no(text: str) -> bool | None:
    """Return True if the whole message is a yes, False if it is a no, and None otherwise."""
    words = "" if len(text) > MAX_CHARACTERS else _normalize(text)
    if words in _YES:
        return True
    return False if words in _NO else None


def _normalize(text: str) -> str:
    """Return the words in lower case, without accents and punctuation."""
    return " ".join(re.findall(r"[^\W_]+", fold(text)))


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
    """
    arguments.text_argument("reason", reason)
    arguments.id_argument("thread_id", thread.thread_id)
    with transaction.atomic():
        existing = lock_open_escalation(thread)
        if existing is not None and existing.to_agent_id is None:
            return existing, False
        write_key(thread)
        if existing is not None:
            end(existing, Outcome.TO_PERSON, by=name or OpenedBy(opened_by).label)
        escalation = Escalation.objects.create(
            **thread.as_filter,
            channel=channel or channel_of(thread),
            message_id=message_id,
            opened_by=opened_by,
            opened_by_name=name,
            reason=reason,
        )
        queued = PendingReply.objects.waiting().select_related("message")
        for pending in queued.in_thread(**thread.as_filter).exclude(pk=message_id):
            # It is not held if a worker answers it at this moment.
            replies.hold(konstruct_message(pending.message), HeldFor.PERSON)
        for event in (EventType.ESCALATION_OPENED, EventType.ESCALATION_WAITING):
            record_event(event, escalation.pk, about=thread)
    return escalation, True


def escalate_message(message: KonstructMessage, opened_by: OpenedBy, reason: str) -> Escalation:
    """Escalate the thread of a message to a person. The reply to the message says so."""
    opened, _ = open_escalation(
        Thread.of(message),
        opened_by=opened_by,
        reason=reason,
        channel=message.channel,
        message_id=message.id,
    )
    return opened


def lock_open_escalation(thread: Thread) -> Escalation | None:
    """Lock the thread's escalations until the transaction ends; return the one that is open."""
    execute("SELECT public.wait_for_tenant_lock(%s)", [f"konstruct.escalation {thread.lane}"])
    return Escalation.objects.select_for_update().open().filter(**thread.as_filter).first()


def hold_for_person(message: KonstructMessage) -> bool:
    """Hold the message for a person; return False if no escalation is open in its thread.

    It locks the escalation, as `resolve` does, so that `resolve` finds the held message.
    """
    with transaction.atomic():
        rows = Escalation.objects.select_for_update().open().to_people()
        escalation = rows.filter(**Thread.of(message).as_filter).first()
        if escalation is None:
            return False
        replies.hold(message, HeldFor.PERSON)
        record_event(EventType.ESCALATION_WAITING, escalation.pk, about=message)
    return True


def resolve(escalation_id: UUID, *, by: str, let_agent_answer: bool, note: str = "") -> Escalation:
    """End the escalation or handover. The agent that the thread belongs to answers again.

    Args:
        escalation_id: the escalation.
        by: the person or program that resolves it.
        let_agent_answer: True: the agent answers the held messages. False: they are closed, because
            a person has handled them.
        note: the result, for the record.

    Raises:
        RowNotFound: no escalation has this id.
        EscalationOver: it is resolved already.
    """
    arguments.text_argument("note", note)
    with transaction.atomic():
        escalation = _lock_open(escalation_id)
        thread = Thread.of(escalation)
        write_key(thread)
        for pending in held_replies(thread):
            message = konstruct_message(pending.message)
            if let_agent_answer:
                replies.release(message)
            else:
                replies.close(message, f"Taken care of by a person: {by}.")
        end(escalation, Outcome.RESOLVED, by=by, note=note)
        record_event(EventType.ESCALATION_RESOLVED, escalation.pk, about=thread)
    escalation.refresh_from_db()
    return escalation


def possible_assignees() -> QuerySet[User]:
    """Return the members of the team who may answer escalations, by username."""
    members = User.objects.with_perm(ANSWER_PERMISSION, backend=AUTH_BACKEND)
    return members.filter(is_active=True, is_staff=True).order_by("username")


def assign(escalation_id: UUID, *, to: str) -> Escalation:
    """Assign an open escalation to a member of the team.

    Args:
        escalation_id: the escalation.
        to: the username; empty: unassigned.

    Raises:
        InvalidArgument: no member of the team who may answer has this name.
        RowNotFound: no escalation has this id.
        EscalationOver: it is resolved already.
    """
    if arguments.text_argument("to", to) and not possible_assignees().filter(username=to).exists():
        raise InvalidArgument(
            f"{to[:80]!r} is not a member of the team who may answer escalations."
        )
    with transaction.atomic():
        escalation = _lock_open(escalation_id)
        escalation.assigned_to = to
        escalation.save(update_fields=["assigned_to"])
    return escalation


def end(escalation: Escalation, outcome: Outcome, *, by: str, note: str = "") -> None:
    """Close an escalation that the caller's transaction has locked."""
    escalation.resolved_at, escalation.resolved_by = Now(), by
    escalation.outcome, escalation.note = outcome, note
    escalation.save(update_fields=["resolved_at", "resolved_by", "outcome", "note"])


def held_replies(thread: Thread) -> list[PendingReply]:
    """Return the thread's replies that are held for a person, with their messages, oldest first."""
    return list(
        PendingReply.objects.held(HeldFor.PERSON)
        .in_thread(**thread.as_filter)
        .select_related("message")
    )


# --- A person answers -----------------------------------------------------------------------------


def answer_as_person(
    escalation_id: UUID,
    content: str,
    *,
    name: str,
    idempotency_key: str | None = None,
    on_change: Callable[[models.Message], object] = lambda turn: None,
) -> models.Message:
    """Write a person's answer into the escalated thread, and return its message.

    It is the reply to the newest held message; earlier held messages are closed. If no message is
    held, it is a message that replies to none. Like every reply it is sent to the channel, and
    added to the window and the memory.

    Args:
        escalation_id: the escalation.
        content: the text.
        name: the person's name.
        idempotency_key: if an answer with this key exists in the thread, it is returned. Unique
            in the tenant.
        on_change: called with the new message, in the same transaction.

    Raises:
        InvalidArgument: the text is blank, or cannot be stored.
        RowNotFound: there is no such escalation.
        EscalationOver: it is resolved already.
        WrongState: another agent answers in the thread.
    """
    arguments.content_argument(content)
    arguments.text_argument("name", name)
    last = last_user_message(Thread.of(_get(Escalation.objects.all(), escalation_id)))
    if last is None:
        raise exceptions.NothingToEscalate("This thread has no messages any more.")
    with messages.lock_windows([Thread.of(last)]):
        if idempotency_key is not None:
            answers = models.Message.objects.filter(**Thread.of(last).as_filter)
            existing = answers.filter(idempotency_key=idempotency_key).first()
            if existing is not None:
                return existing
        escalation = _lock_open(escalation_id)
        if escalation.to_agent_id is not None:
            raise exceptions.WrongState(
                "Another agent answers in this thread. Let a person answer there first."
            )
        earlier = held_replies(Thread.of(escalation))
        newest = earlier.pop() if earlier else None
        question = None if newest is None else konstruct_message(newest.message)
        turn, _ = transcript.record_message(
            tenant_id=required_tenant_id(),
            **Thread.of(escalation).as_filter,  # type: ignore[arg-type]  # the names of a thread
            channel=escalation.channel if question is None else question.channel,
            role=models.Role.ASSISTANT,
            name=name,
            content=content,
            in_reply_to=None if question is None else question.id,
            idempotency_key=idempotency_key,
            appended=True,
        )
        answered = EventType.ESCALATION_ANSWERED
        record_event(answered, escalation.pk, about=turn, detail=str(turn.pk))
        if question is not None:
            replies.REPLIES.finish(question.id)
            record_event(EventType.MESSAGE_ANSWERED, question.id, about=turn)
            replies.announce_change(question)
        else:
            replies.notify_person_message(turn, after=konstruct_message(last))
        for pending in earlier:
            reason = f"Answered by {name} together with a later message."
            replies.close(konstruct_message(pending.message), reason)
        extraction_queue.enqueue(turn.tenant_id, [Thread.of(turn)])
        on_change(turn)
    turns = [] if newest is None else [Turn.of(newest.message)]
    short_term.append_turns(turn.tenant_id, turn.agent_id, turn.user_id, [*turns, Turn.of(turn)])
    return turn


# --- Inside ---------------------------------------------------------------------------------------


def last_user_message(thread: Thread) -> models.Message | None:
    """Return the user's last message in the thread; None without one."""
    rows = models.Message.objects.filter(**thread.as_filter, role=models.Role.USER)
    return rows.order_by("-number").first()


def channel_of(thread: Thread) -> str:
    """Return the channel of the user's last message. Raises NothingToEscalate without one."""
    last = last_user_message(thread)
    if last is None:
        raise exceptions.NothingToEscalate(
            f"{thread.user_id!r} has sent no message to this agent in thread {thread.thread_id!r}."
        )
    return last.channel


def _get(rows: QuerySet[Escalation], escalation_id: UUID) -> Escalation:
    escalation = rows.filter(pk=escalation_id).first()
    if escalation is None:
        raise exceptions.RowNotFound(f"No escalation has the id {escalation_id}.")
    return escalation


def _lock_open(escalation_id: UUID) -> Escalation:
    escalation = _get(Escalation.objects.select_for_update(), escalation_id)
    if escalation.resolved_at is not None:
        raise exceptions.EscalationOver(
            f"This escalation was resolved by {escalation.resolved_by} at"
            f" {escalation.resolved_at:%Y-%m-%d %H:%M %Z}."
        )
    return escalation
