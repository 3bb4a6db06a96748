"""The data that a reply depends on, read in one place into a frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from konstruct.orchestrator.exceptions import AgentNotFound, MessageNotFound
from konstruct.orchestrator.handoff.detection import yes_or_no
from konstruct.orchestrator.handoff.escalations import Answering, who_answers
from konstruct.orchestrator.messages import KonstructMessage, Thread, konstruct_message
from konstruct.orchestrator.models import (
    Agent,
    AnswerOptions,
    Escalation,
    PendingReply,
    ToolCall,
)
from konstruct.orchestrator.models.agents import PendingReplyQuerySet
from konstruct.orchestrator.tools import tool_calls
from memory.models import Message, Role
from tenants.postgresql.compiled import CompiledRead


@dataclass(frozen=True, slots=True)
class Consent:
    """A plain yes or no in a thread in which one tool call waits for consent."""

    approve: bool
    call_id: UUID | None
    """None: this message has decided a call already, in an attempt that was killed."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A message, and all data that its reply depends on, at one time."""

    message: KonstructMessage
    thread: Thread
    reply: Message | None
    """The reply that an earlier, killed attempt has recorded."""
    answering: Answering | None
    """The person or agent that answers instead of the thread's own agent."""
    own: Agent | None
    """The thread's own agent, active or not: an inactive one answers accepted messages."""
    guest: Agent | None
    """The agent that the thread was handed to, if it is active."""
    options: Mapping[str, Any]
    """The program's options of the answer, as in AnswerOptions."""
    instructions: tuple[str, ...]
    """The program's system and developer messages, in their order."""
    calls: tuple[ToolCall, ...]
    """Tool calls that the message has led to, in their order."""
    consent: Consent | None
    was_seen: bool
    """Whether a person has resolved an escalation of the thread since the message was sent."""
    passed_on_by: frozenset[UUID]
    """Agents whose rules have handed the thread over for this message."""
    may_hand_back: bool
    """Whether the answering agent got the thread by a handover."""

    @property
    def own_agent(self) -> Agent:
        """The thread's own agent. Raises AgentNotFound if it does not exist."""
        if self.own is None:
            raise AgentNotFound(f"Agent {self.message.agent_id} does not exist any more.")
        return self.own

    @property
    def agent(self) -> Agent | None:
        """The agent that answers; None if the agent with the thread is inactive.

        Raises AgentNotFound if it is the thread's own, and does not exist.
        """
        if self.answering is None or self.answering.is_person:
            return self.own_agent
        return self.guest

    def without_handover(self) -> "Snapshot":
        """Return the same snapshot for the thread's own agent, after the end of a handover."""
        return replace(self, answering=None, guest=None, may_hand_back=False)


def thread_of(message_id: UUID) -> tuple[Thread, UUID | None]:
    """Return the message's thread, and its oldest message that is due, if any.

    Raises:
        MessageNotFound: the tenant has no such message.
    """
    row: Any = _thread_of.first(message_id=message_id)
    if row is None:
        raise MessageNotFound(f"No user's message has the id {message_id}.")
    return Thread.of(row), row.oldest_ready


def oldest_ready(thread: Thread) -> Snapshot | None:
    """Read the oldest due message of the thread; None if there is none.

    Failed messages that wait for their next attempt are skipped, so that they do not block the
    thread. Two statements and a read of the cache; one more statement with tool calls, options of
    the program, an earlier reply, or a plain yes or no.
    """
    row = _oldest_ready.first(**thread.named)
    return None if row is None else _snapshot(row, thread)


def read(message: KonstructMessage) -> Snapshot:
    """Read the message and the data of its reply. Raises MessageNotFound."""
    thread = Thread.of(message)
    row = _message.first(message_id=message.id, **thread.named)
    if row is None:
        raise MessageNotFound(f"No user's message has the id {message.id}.")
    return _snapshot(row, thread)


def load_message(message_id: UUID) -> KonstructMessage:
    """Rebuild the message from the transcript.

    Raises MessageNotFound.
    """
    row = Message.objects.filter(pk=message_id, role=Role.USER).first()
    if row is None:
        raise MessageNotFound(f"No user's message has the id {message_id}.")
    return konstruct_message(row)


def _ready_in(agent_id: Any, user_id: Any, thread_id: Any) -> PendingReplyQuerySet:
    return PendingReply.objects.due().in_thread(
        agent_id=agent_id, user_id=user_id, thread_id=thread_id
    )


@CompiledRead
def _thread_of(message_id: Any) -> QuerySet[Message]:
    in_its_thread = _ready_in(OuterRef("agent_id"), OuterRef("user_id"), OuterRef("thread_id"))
    return (
        Message.objects.filter(pk=message_id, role=Role.USER)
        .annotate(oldest_ready=Subquery(in_its_thread.values("message_id")[:1]))
        .only("agent_id", "user_id", "thread_id")
    )


@CompiledRead
def _oldest_ready(agent_id: Any, user_id: Any, thread_id: Any) -> QuerySet[Message]:
    waiting = _ready_in(agent_id, user_id, thread_id).values("message_id")[:1]
    return _messages(agent_id, user_id, thread_id).filter(pk=waiting)


@CompiledRead
def _message(message_id: Any, agent_id: Any, user_id: Any, thread_id: Any) -> QuerySet[Message]:
    return _messages(agent_id, user_id, thread_id).filter(pk=message_id, role=Role.USER)


@CompiledRead
def _options(message_id: Any) -> QuerySet[AnswerOptions]:
    return AnswerOptions.objects.filter(pk=message_id)


@CompiledRead
def _agents(own: Any, guest: Any) -> QuerySet[Agent]:
    return Agent.objects.filter(Q(pk=own) | Q(pk=guest))


def _messages(agent_id: Any, user_id: Any, thread_id: Any) -> QuerySet[Any]:
    """Return the messages of the thread with the columns of other tables about them."""
    ended = Escalation.objects.filter(agent_id=agent_id, user_id=user_id, thread_id=thread_id)
    return Message.objects.annotate(
        has_reply=Exists(Message.objects.filter(in_reply_to_id=OuterRef("pk"))),
        has_options=Exists(AnswerOptions.objects.filter(message_id=OuterRef("pk"))),
        has_calls=Exists(ToolCall.objects.filter(message_id=OuterRef("pk"))),
        was_seen=Exists(ended.to_people().filter(resolved_at__gte=OuterRef("created_at"))),
        passed_on_by=ArraySubquery(
            ended.filter(message_id=OuterRef("pk"), opened_by=Escalation.OpenedBy.RULE)
            .to_agents()
            .values("from_agent_id")
        ),
    )


def _snapshot(row: Any, thread: Thread) -> Snapshot:
    message, answering = konstruct_message(row), who_answers(thread)
    guest_id = None if answering is None else answering.agent_id
    agents = {agent.pk: agent for agent in _agents(own=thread.agent_id, guest=guest_id)}
    guest = agents.get(guest_id) if guest_id else None
    asked = _options.first(message_id=row.pk) if row.has_options else None
    return Snapshot(
        message=message,
        thread=thread,
        reply=Message.objects.filter(in_reply_to=row.pk).first() if row.has_reply else None,
        answering=answering,
        own=agents.get(thread.agent_id),
        guest=guest if guest is not None and guest.is_active else None,
        options={} if asked is None else asked.options,
        instructions=() if asked is None else tuple(asked.instructions),
        calls=tuple(ToolCall.objects.of_message(row.pk)) if row.has_calls else (),
        consent=_consent(message),
        was_seen=row.was_seen,
        passed_on_by=frozenset(row.passed_on_by),
        may_hand_back=guest_id is not None,
    )


def _consent(message: KonstructMessage) -> Consent | None:
    approve = yes_or_no(message.content)
    if approve is None:
        return None
    call_id = tool_calls.only_waiting_call(message)
    if call_id is None and not tool_calls.has_decided(message):
        return None
    return Consent(approve, call_id)
