"""The data that a reply depends on, read in one place into a frozen value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, QuerySet

from konstruct.orchestrator.exceptions import AgentNotFound, MessageNotFound
from konstruct.orchestrator.handoff.detection import yes_or_no
from konstruct.orchestrator.handoff.escalations import OPEN_ESCALATION, EscalationState
from konstruct.orchestrator.messages import KonstructMessage, Thread, konstruct_message
from konstruct.orchestrator.models import Agent, AnswerOptions, Escalation, ToolCall
from konstruct.orchestrator.tools import tool_calls
from memory.models import Message, Role


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
    escalation: EscalationState | None
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
    history: Sequence[Mapping[str, Any]] | None = None
    """The turns of the prompt that a program sent; None: those of the window."""

    @property
    def thread_agent(self) -> Agent:
        """The agent that the message was sent to. Raises AgentNotFound if it does not exist."""
        if self.thread_agent_or_none is None:
            raise AgentNotFound(f"Agent {self.message.agent_id} does not exist any more.")
        return self.thread_agent_or_none

    @property
    def answering_agent(self) -> Agent | None:
        """The agent that answers the message; None if the thread was handed to an inactive one.

        Raises AgentNotFound if the message was sent to an agent that does not exist.
        """
        if self.escalation is None or self.escalation.is_to_person:
            return self.thread_agent
        return self.handover_agent

    def without_handover(self) -> "Snapshot":
        """Return the same snapshot without the escalation or handover, which has ended."""
        return replace(self, escalation=None, handover_agent=None, can_hand_back=False)


def read_snapshot(message_id: UUID) -> Snapshot:
    """Read a message and the data of its reply.

    Two statements; one more with tool calls, options of the
    program, an earlier reply, or a plain yes or no.

    Raises:
        MessageNotFound: there is no such message.
    """
    row = _messages().filter(pk=message_id, role=Role.USER).first()
    if row is None:
        raise MessageNotFound(f"No user's message has the id {message_id}.")
    return _snapshot(row, Thread.of(row))


def load_message(message_id: UUID) -> KonstructMessage:
    """Return the message from the transcript. Raises MessageNotFound."""
    row = Message.objects.filter(pk=message_id, role=Role.USER).first()
    if row is None:
        raise MessageNotFound(f"No user's message has the id {message_id}.")
    return konstruct_message(row)


@cache  # building the expressions takes as long as a statement
def _messages() -> QuerySet[Any]:
    """Annotate all messages with the columns that a snapshot needs."""
    of_thread = {name: OuterRef(name) for name in ("agent_id", "user_id", "thread_id")}
    escalations = Escalation.objects.filter(**of_thread)
    return Message.objects.annotate(
        open_escalation=OPEN_ESCALATION,
        has_reply=Exists(Message.objects.filter(in_reply_to_id=OuterRef("pk"))),
        has_options=Exists(AnswerOptions.objects.filter(message_id=OuterRef("pk"))),
        has_calls=Exists(ToolCall.objects.filter(message_id=OuterRef("pk"))),
        was_handled_by_person=Exists(
            escalations.to_people().filter(resolved_at__gte=OuterRef("created_at"))
        ),
        handed_over_by=ArraySubquery(
            escalations.filter(message_id=OuterRef("pk"), opened_by=Escalation.OpenedBy.RULE)
            .to_agents()
            .values("from_agent_id")
        ),
    )


def _snapshot(row: Any, thread: Thread) -> Snapshot:
    message, escalation = konstruct_message(row), EscalationState.of(row.open_escalation)
    handover_id = None if escalation is None else escalation.to_agent_id
    agents = Agent.objects.with_version().in_bulk({thread.agent_id, handover_id} - {None})
    handover_agent = agents.get(handover_id) if handover_id else None
    if handover_agent is not None and not handover_agent.is_active:
        handover_agent = None
    answer_options = AnswerOptions.objects.filter(pk=row.pk).first() if row.has_options else None
    return Snapshot(
        message=message,
        thread=thread,
        reply=Message.objects.filter(in_reply_to=row.pk).first() if row.has_reply else None,
        escalation=escalation,
        thread_agent_or_none=agents.get(thread.agent_id),
        handover_agent=handover_agent,
        options={} if answer_options is None else answer_options.options,
        instructions=() if answer_options is None else tuple(answer_options.instructions),
        calls=tuple(ToolCall.objects.of_message(row.pk)) if row.has_calls else (),
        consent=_consent(message),
        was_handled_by_person=row.was_handled_by_person,
        handed_over_by=frozenset(row.handed_over_by),
        can_hand_back=handover_id is not None,
        history=None if answer_options is None else answer_options.history,
    )


def _consent(message: KonstructMessage) -> Consent | None:
    approve = yes_or_no(message.content)
    if approve is None:
        return None
    call_id = tool_calls.only_waiting_call(message)
    if call_id is None and not tool_calls.has_decided(message):
        return None
    return Consent(approve, call_id)
