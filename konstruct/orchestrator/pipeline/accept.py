"""Accepts messages, retries failed ones, and reads a message for its reply.

All data that a reply depends on is read in one place into a frozen value.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db import models
from django.db.models import Exists, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, JSONArray, NullIf

from konstruct.orchestrator import agents, exceptions, replies, tool_calls, usage
from konstruct.orchestrator.handoff import escalations
from konstruct.orchestrator.messages import KonstructMessage, Thread, konstruct_message
from konstruct.orchestrator.models import Agent, AnswerOptions, Escalation, PendingReply, ToolCall
from memory.conversations.transcript import record_message
from memory.models import Message, Role
from memory.text.sentences import estimated_pieces
from tenants import context, metrics, transaction
from tenants.audit.people import NO_LOCALE, Locale, Person
from tenants.limits.quotas import QuotaExceeded

ACCEPTED: Final = metrics.counter(
    "konstruct_messages_accepted_total",
    "Messages of users that were accepted.",
    channel=("rest", "slack", "openai"),
)
_CONTENT_FIELDS = ("agent_id", "user_id", "thread_id", "channel", "name", "content")


@dataclass(frozen=True)
class Incoming:
    """A validated and normalised message of a channel."""

    agent_id: UUID
    user_id: str
    thread_id: str
    channel: str
    content: str
    name: str = ""
    idempotency_key: str | None = None
    """The id of the message in its channel; with the caller, if the channel has several."""
    created_at: datetime | None = None
    """When it was sent, if the channel gives the time; by default when it is stored."""
    metadata: Mapping[str, Any] | None = None
    """Labels of the program."""
    options: AnswerOptions | None = None
    """Options of the answer, not saved yet."""


def accept(incoming: Incoming, *, tenant_id: UUID) -> tuple[Message, bool]:
    """Store the message, and enqueue its reply.

    With the idempotency key of an existing message of the same channel, that message is returned.
    It sets no savepoint: a caller that goes on after an error puts it into `atomic()`.

    Returns:
        The message, and whether it is new.

    Raises:
        IdempotencyKeyReused: the existing message has other content.
        QuotaExceeded: the message is new, and a hard limit of the tenant is reached.
    """
    pieces = estimated_pieces(incoming.content, incoming.name)
    key, prefix = incoming.idempotency_key, f"{incoming.channel}/"
    if key is not None and not key.startswith(prefix):
        key = prefix + key  # keys of two channels cannot be equal
    thread = Thread(incoming.agent_id, incoming.user_id, incoming.thread_id)
    with context.tenant_scope(tenant_id), transaction.atomic(savepoint=False):
        try:
            usage.require_room(usage.MESSAGE_QUOTAS, memories=pieces)
        except QuotaExceeded:
            if key is None or not Message.objects.filter(idempotency_key=key).exists():
                raise
        message, created = record_message(
            tenant_id=tenant_id,
            **{name: getattr(incoming, name) for name in _CONTENT_FIELDS},
            role=Role.USER,
            idempotency_key=key,
            created_at=incoming.created_at,
            metadata=incoming.metadata,
            job=(replies.REPLIES, thread.lane),
        )
        if created:
            PendingReply(message=message)  # sets message.pending_reply without a query
            if incoming.options is not None:
                incoming.options.save_for(message)
            usage.count(messages=1, memories=pieces)
    if created:
        ACCEPTED.of(channel=incoming.channel).inc()
    else:
        _refuse_different(message, incoming)
    return message, created


def retry_reply(message_id: UUID, *, tenant_id: UUID) -> None:
    """Retry the failed reply to a message.

    Args:
        message_id: the user's message.
        tenant_id: its tenant.

    Raises:
        NothingToRetry: the reply has not failed.
    """
    with context.tenant_scope(tenant_id), transaction.atomic():
        replies.retry(message_id)
        replies.notify_changed(load_message(message_id))


def _refuse_different(existing: Message, incoming: Incoming) -> None:
    different = [
        field for field in _CONTENT_FIELDS if getattr(existing, field) != getattr(incoming, field)
    ]
    if (existing.metadata or {}) != (incoming.metadata or {}):
        different.append("metadata")
    if different:
        raise exceptions.IdempotencyKeyReused(
            f"You have sent this Idempotency-Key with another {' and '.join(different)}. "
            "Send a new key with a new message."
        )


# --- What a reply depends on ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Consent:
    """The user's answer to the only tool call of the thread that waits for consent."""

    approve: bool
    call_id: UUID | None
    """None: an earlier attempt has stored the decision of this message, and was killed."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A message, and all data that its reply depends on, at one time."""

    message: KonstructMessage
    thread: Thread
    reply: Message | None
    """The reply that an earlier, killed attempt has recorded."""
    escalation: escalations.EscalationState | None
    """The open escalation or handover of the thread."""
    thread_agent_or_none: Agent | None
    """The agent that the message was sent to. An inactive one answers accepted messages."""
    handover_agent: Agent | None
    """The agent that the thread was handed over to, if it is active."""
    options: Mapping[str, Any]
    """Options of the answer that a program sent, as in AnswerOptions."""
    instructions: tuple[str, ...]
    """System and developer messages of the program, in their order."""
    calls: tuple[ToolCall, ...]
    """Tool calls of the message, in their order."""
    consent: Consent | None
    was_handled_by_person: bool
    """Whether a person has resolved an escalation of the thread since the message was sent."""
    handed_over_by: frozenset[UUID]
    """Agents whose rules have handed the thread over for this message."""
    can_hand_back: bool
    """Whether the answering agent got the thread by a handover."""
    locale: Locale
    """The language and the time zone of the user."""
    history: Sequence[Mapping[str, Any]] | None = None
    """The turns of the prompt that a program sent; None: those of the window."""

    @property
    def thread_agent(self) -> Agent:
        """The agent that the message was sent to. Raises AgentNotFound if it does not exist."""
        if self.thread_agent_or_none is None:
            raise exceptions.AgentNotFound(
                f"Agent {self.message.agent_id} does not exist any more."
            )
        return self.thread_agent_or_none

    @property
    def answering_agent(self) -> Agent | None:
        """The agent that answers the message; None if the thread was handed to an inactive one.

        Raises AgentNotFound if the message was sent to an agent that does not exist.
        """
        if self.escalation is None or self.escalation.is_to_person:
            return self.thread_agent
        return self.handover_agent


def read_snapshot(message_id: UUID) -> Snapshot:
    """Read a message and the data of its reply.

    Two statements; one more with a handover, tool calls, options of the program, an earlier reply,
    or a plain yes or no.

    Raises:
        MessageNotFound: there is no such message.
    """
    row = _message(_messages(), message_id)
    message, thread = konstruct_message(row), Thread.of(row)
    escalation = escalations.EscalationState.of(row.open_escalation)
    handover_id = None if escalation is None else escalation.to_agent_id
    handover_agent = _agent_or_none(message.tenant_id, handover_id) if handover_id else None
    answer_options = AnswerOptions.objects.filter(pk=row.pk).first() if row.has_options else None
    consent, approve = None, escalations.yes_or_no(message.content)
    if approve is not None:
        call_id = tool_calls.only_waiting_call(message)
        if call_id is not None or tool_calls.has_decided(message):
            consent = Consent(approve, call_id)
    return Snapshot(
        message=message,
        thread=thread,
        reply=Message.objects.filter(in_reply_to=row.pk).first() if row.has_reply else None,
        escalation=escalation,
        thread_agent_or_none=_agent_or_none(message.tenant_id, thread.agent_id),
        handover_agent=handover_agent if handover_agent and handover_agent.is_active else None,
        options={} if answer_options is None else answer_options.options,
        instructions=() if answer_options is None else tuple(answer_options.instructions),
        calls=tuple(ToolCall.objects.of_message(row.pk)) if row.has_calls else (),
        consent=consent,
        was_handled_by_person=row.was_handled_by_person,
        handed_over_by=frozenset(row.handed_over_by),
        can_hand_back=handover_id is not None,
        locale=Locale(*row.locale) if row.locale else NO_LOCALE,
        history=None if answer_options is None else answer_options.history,
    )


def _agent_or_none(tenant_id: UUID, agent_id: UUID) -> Agent | None:
    with suppress(exceptions.AgentNotFound):
        return agents.load_agent_for_tenant(tenant_id, agent_id)
    return None


def load_message(message_id: UUID) -> KonstructMessage:
    """Return the message from the transcript. Raises MessageNotFound."""
    return konstruct_message(_message(Message.objects.all(), message_id))


def _message(messages: QuerySet[Any], message_id: UUID) -> Any:
    row = messages.filter(pk=message_id, role=Role.USER).first()
    if row is None:
        raise exceptions.MessageNotFound(f"No user's message has the id {message_id}.")
    return row


@cache  # building the expressions takes as long as a statement
def _messages() -> QuerySet[Any]:
    """Annotate all messages with the columns that a snapshot needs."""
    of_thread = {name: OuterRef(name) for name in ("agent_id", "user_id", "thread_id")}
    of_same_thread = Escalation.objects.filter(**of_thread)
    return Message.objects.annotate(
        open_escalation=escalations.OPEN_ESCALATION,
        has_reply=Exists(Message.objects.filter(in_reply_to_id=OuterRef("pk"))),
        has_options=Exists(AnswerOptions.objects.filter(message_id=OuterRef("pk"))),
        has_calls=Exists(ToolCall.objects.filter(message_id=OuterRef("pk"))),
        was_handled_by_person=Exists(
            of_same_thread.to_people().filter(resolved_at__gte=OuterRef("created_at"))
        ),
        handed_over_by=ArraySubquery(
            of_same_thread.filter(message_id=OuterRef("pk"), opened_by=Escalation.OpenedBy.RULE)
            .to_agents()
            .values("from_agent_id")
        ),
        # Of the user, as `Locale`.
        locale=Subquery(
            Person.objects.filter(pk=OuterRef("user_id")).values(
                found=JSONArray(
                    "language",
                    Coalesce(
                        NullIf("time_zone", Value("", models.TextField())), "channel_time_zone"
                    ),
                )
            )
        ),
    )
