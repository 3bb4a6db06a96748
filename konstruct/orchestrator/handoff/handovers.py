"""Handovers: another agent of the tenant answers in a thread until it is handed on or back.

An agent's rule or language model, a program or a person hands a thread over. Messages still have
the address of the thread's own agent, and the other agent answers them. If a thread would return to
an agent that had it, it is escalated to a person.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import DateTimeField, Func, Q
from django.db.models.functions import Now

from konstruct.llm.completions import Completion, RequestedCall
from konstruct.orchestrator.agents import find_agent
from konstruct.orchestrator.exceptions import NothingToHandOver
from konstruct.orchestrator.handoff import escalations
from konstruct.orchestrator.handoff.detection import phrase_in
from konstruct.orchestrator.handoff.escalations import mark_changing
from konstruct.orchestrator.messages import KonstructMessage, Thread, konstruct_message
from konstruct.orchestrator.models import Agent, Escalation
from konstruct.orchestrator.replies import queue
from konstruct.orchestrator.tools import tool_calls
from memory.arguments import id_argument, text_argument
from memory.models import Message, Role
from tenants import transaction

HAND_TO_AGENT: Final = "hand_to_agent"
HAND_BACK: Final = "hand_back"
NAMES: Final = frozenset({HAND_TO_AGENT, HAND_BACK})
MAX_REASON_CHARACTERS = 500
NOT_DONE: Final = "Error: not done, for the conversation was to be handed over."


class ClockTimestamp(Func):
    """The time of the statement: handovers of one transaction need different times."""

    function = "clock_timestamp"
    output_field = DateTimeField()


OpenedBy = Escalation.OpenedBy
Outcome = Escalation.Outcome
# The maximum number of agents before a person must decide.
MAX_AGENTS = 5
# Earlier handovers are ignored.
MAX_HANDOVER_AGE = timedelta(days=1)


# --- The tools of the language model -------------------------------------------------------------


def offered(agent: Agent, *, can_hand_back: bool) -> list[dict[str, Any]]:
    """Return the handover tools that the agent can use, in OpenAI's format."""
    tools = []
    if agent.hands_to and (names := targets(agent)):
        tools.append(
            _tool(
                HAND_TO_AGENT,
                "Hand this conversation to another agent, who answers the user from now on. Use it"
                " when the user needs that agent. Do not answer the message yourself then.",
                {
                    "agent": {"type": "string", "enum": sorted(names)},
                    "reason": {"type": "string", "description": "The reason, for the record."},
                },
                required=["agent"],
            )
        )
    if can_hand_back:
        tools.append(
            _tool(
                HAND_BACK,
                "Hand this conversation back to the agent that had it before you, when the user is"
                " done with what you are for. Do not answer the message yourself then.",
                {},
            )
        )
    return tools


def follow(
    message: KonstructMessage, agent: Agent, completion: Completion, *, round_number: int
) -> bool:
    """Execute the first handover call of a completion.

    Other calls of the completion are not executed: they were this agent's. A call that cannot be
    executed is stored with the reason, for the language model.

    Returns:
        Whether another agent or a person answers the message now.
    """
    requested = completion.requested
    place = next((n for n, each in enumerate(requested) if each.name in NAMES), None)
    if place is None:
        return False
    with transaction.atomic():
        done, what = _done(message, agent, requested[place])
        results = [NOT_DONE] * len(requested)
        results[place] = what
        tool_calls.note(
            message,
            agent,
            completion,
            round_number=round_number,
            done=place if done else None,
            results=results,
        )
    return done


def _done(message: KonstructMessage, agent: Agent, asked: RequestedCall) -> tuple[bool, str]:
    """Execute a call. Return whether it was executed, and the text of its result."""
    arguments = asked.arguments if isinstance(asked.arguments, dict) else {}
    if asked.name == HAND_BACK:
        if hand_back(Thread.of(message), agent):
            return True, "Handed back."
        return False, "Error: this conversation was not handed to you."
    names = targets(agent)
    wanted, reason = arguments.get("agent"), arguments.get("reason")
    if not isinstance(wanted, str) or wanted not in names:
        known = ", ".join(sorted(names)) or "none"
        return False, f"Error: there is no agent {wanted!r} to hand to; there are: {known}"
    opened = pass_on(
        message,
        agent,
        names[wanted].id,
        opened_by=Escalation.OpenedBy.AGENT,
        reason=str(reason)[:MAX_REASON_CHARACTERS]
        if reason
        else f"{agent.name} asked for {wanted}.",
    )
    if opened is None:
        return True, "Not done: somebody else has decided about this conversation."
    if opened.to_agent_id is None:
        return True, "A person was asked for instead."
    return True, f"Handed to {wanted}."


def targets(agent: Agent) -> dict[str, Agent]:
    """Return the active agents that the agent may hand a conversation to, by name."""
    return {each.name: each for each in Agent.objects.active().filter(pk__in=agent.hands_to)}


def _tool(
    name: str, description: str, properties: dict[str, Any], required: Sequence[str] = ()
) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": list(required),
                "additionalProperties": False,
            },
        },
    }


# --- Reading --------------------------------------------------------------------------------------


def agents_since_a_person(thread: Thread) -> set[UUID]:
    """Return the agents that had the thread since a person or program last decided about it.

    Only handovers within MAX_HANDOVER_AGE count, because a conversation can last for years.
    """
    rows = Escalation.objects.filter(**thread.named).filter(
        Q(resolved_at__isnull=True) | Q(resolved_at__gte=Now() - MAX_HANDOVER_AGE)
    )
    had = {thread.agent_id}
    for row in rows.order_by("-opened_at", "-id"):
        if row.to_agent_id is None or row.outcome == Outcome.RESOLVED:
            break
        had.add(row.to_agent_id)
        if row.opened_by in (OpenedBy.PROGRAM, OpenedBy.PERSON):
            break
    return had


def answered_last(message: KonstructMessage, agent: Agent) -> bool:
    """Return whether this agent wrote the last reply in the message's thread."""
    replies = Message.objects.filter(**Thread.of(message).named, role=Role.ASSISTANT)
    last = replies.order_by("-created_at", "-number").values_list("answered_by_id", flat=True)
    return last.first() == agent.id


# --- By a person or a program ---------------------------------------------------------------------


def hand_over(
    thread: Thread, to_agent: UUID, *, opened_by: Escalation.OpenedBy, name: str, reason: str
) -> tuple[Escalation, bool]:
    """Hand the thread over to another agent, by a decision of a person or a program.

    The agent answers the messages that are held for a person. It may have had the thread before.

    Returns:
        The handover, and whether it is new.

    Raises:
        AgentNotFound: this tenant has no such active agent.
        NothingToHandOver: it is the thread's own agent.
        NothingToEscalate: the user has no message in this thread.
        InvalidArgument: a text cannot be stored.
        Busy: other requests changed the thread's escalation MAX_ATTEMPTS times meanwhile.
    """
    text_argument("reason", reason)
    id_argument("thread_id", thread.thread_id)
    agent = find_agent(str(to_agent), active=True)
    if agent.id == thread.agent_id:
        raise NothingToHandOver(
            f"{agent.name} is the agent of this thread already: resolve the open escalation."
        )
    with transaction.atomic():
        for _ in range(escalations.MAX_ATTEMPTS):
            existing = escalations.open_in(thread)
            if existing is not None and existing.to_agent_id == agent.id:
                return existing, False
            opened = _hand(thread, agent, existing, opened_by=opened_by, name=name, reason=reason)
            if opened is not None:
                return opened, True
        raise escalations.busy_after_conflicts(thread)


# --- By an agent ----------------------------------------------------------------------------------


def agent_named_in(text: str, agent: Agent) -> tuple[UUID, str] | None:
    """Return the agent that a rule of this one names for the text, and the reason, or None."""
    phrase = phrase_in(text, agent.hand_over_on)
    if phrase is None:
        return None
    return UUID(agent.hand_over_on[phrase]), f"The message says {phrase!r}."


def pass_on(
    message: KonstructMessage,
    from_agent: Agent,
    to_agent: UUID,
    *,
    opened_by: Escalation.OpenedBy,
    reason: str,
) -> Escalation | None:
    """Hand the message's thread from the agent that has it to another agent.

    The thread is escalated to a person instead if the other agent does not exist, is inactive or
    had the thread already, or if MAX_AGENTS agents had it.

    Returns:
        The open handover or escalation; None if another request has changed it meanwhile.
    """
    thread = Thread.of(message)
    with transaction.atomic():
        existing = escalations.open_in(thread)
        has_it = thread.agent_id if existing is None else existing.to_agent_id
        if has_it != from_agent.id:
            return None
        agent, why = next_agent(to_agent, agents_since_a_person(thread))
        if agent is not None:
            return _hand(
                thread,
                agent,
                existing,
                opened_by=opened_by,
                name=from_agent.name,
                reason=reason,
                message=message,
            )
        return call_person(message, refusal_reason(from_agent, why, reason))


def next_agent(to_agent: UUID, had: Collection[UUID]) -> tuple[Agent | None, str]:
    """Return the next agent of a thread, or None and the reason for an escalation to a person.

    Args:
        to_agent: the agent that a rule or a language model names.
        had: the agents that had the thread since a person decided about it.
    """
    agent = Agent.objects.active().filter(pk=to_agent).first()
    if agent is None:
        return None, "the agent is not there, or not active"
    if agent.id in had:
        return None, f"{agent.name} had this conversation already"
    if len(had) >= MAX_AGENTS:
        return None, f"{len(had)} agents had this conversation already"
    return agent, ""


def refusal_reason(from_agent: Agent, why: str, reason: str) -> str:
    """Return the reason of the escalation to a person instead of a handover."""
    return f"{from_agent.name} could not hand over ({why}): {reason}"


def hand_back(thread: Thread, agent: Agent) -> bool:
    """Hand the thread back to the agent that had it before.

    Inactive agents are skipped, down to the thread's own agent.

    Returns:
        False if the agent does not have the thread.
    """
    with transaction.atomic():
        handover = escalations.open_in(thread)
        if handover is None or handover.to_agent_id != agent.id:
            return False
        mark_changing(thread)
        escalations.end(handover, Outcome.HANDED_BACK, by=agent.name)
        before = _before(handover)
        if before is not None:
            Escalation.objects.create(
                **thread.named,
                channel=handover.channel,
                message_id=handover.message_id,
                to_agent_id=before.to_agent_id,
                from_agent_id=before.from_agent_id,
                opened_by=OpenedBy.AGENT,
                opened_by_name=agent.name,
                opened_at=ClockTimestamp(),
                reason=f"{agent.name} handed it back.",
            )
    return True


def call_person(message: KonstructMessage, reason: str) -> Escalation:
    """Escalate the message's thread to a person. The message's reply announces it."""
    opened, _ = escalations.open_escalation(
        Thread.of(message),
        opened_by=OpenedBy.RULE,
        reason=reason,
        channel=message.channel,
        message_id=message.id,
    )
    return opened


# --- Inside ---------------------------------------------------------------------------------------


def _hand(
    thread: Thread,
    agent: Agent,
    existing: Escalation | None,
    *,
    opened_by: Escalation.OpenedBy,
    name: str,
    reason: str,
    message: KonstructMessage | None = None,
) -> Escalation | None:
    """Open the handover, and release the messages that are held for a person.

    Returns:
        The handover; None if another request was first.
    """
    mark_changing(thread)
    channel = escalations.channel_of(thread) if message is None else message.channel
    handover = escalations.replace_open(
        existing,
        Outcome.HANDED_ON,
        by=name,
        **thread.named,
        channel=channel,
        message_id=None if message is None else message.id,
        to_agent_id=agent.id,
        from_agent_id=(existing and existing.to_agent_id) or thread.agent_id,
        opened_by=opened_by,
        opened_by_name=name,
        opened_at=ClockTimestamp(),
        reason=reason,
    )
    if handover is not None:
        for pending in escalations.held_in(thread):
            queue.release(konstruct_message(pending.message))
    return handover


def _before(handover: Escalation) -> Escalation | None:
    """Return the handover that is restored by handing back; None: the thread's own agent."""
    thread = Thread.of(handover)
    rows = Escalation.objects.to_agents().filter(**thread.named, opened_at__lt=handover.opened_at)
    before, seen = handover.from_agent_id, {handover.to_agent_id}
    while before not in (None, thread.agent_id) and before not in seen:
        seen.add(before)
        row = rows.filter(to_agent_id=before).order_by("-opened_at").first()
        if row is None:
            return None
        if Agent.objects.active().filter(pk=before).exists():
            return row
        before = row.from_agent_id
    return None
