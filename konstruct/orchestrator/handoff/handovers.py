"""Handovers: another agent of the tenant answers in a thread, until it is handed on or back.

A rule of an agent, its language model, a program or a person hands a thread over. Later messages
are still addressed to the first agent, and the other agent answers them. A thread that would be
handed to an agent that had it before is escalated to a person.

The window of an agent has its own turns with the user. After a handover, and if several people
speak in the thread, the turns of the thread follow in the prompt, with the names of their speakers.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now

from konstruct.llm.completions import Completion
from konstruct.orchestrator import agents, builder, exceptions, replies, tool_calls, tool_catalog
from konstruct.orchestrator.handoff import escalations
from konstruct.orchestrator.messages import KonstructMessage, Thread, konstruct_message
from konstruct.orchestrator.models import Agent, Escalation, ToolCall
from konstruct.orchestrator.models.replies import ToolCallState
from memory import conf, models, short_term
from memory.arguments import id_argument, text_argument
from memory.context.chat import with_speaker
from memory.conversations import transcript, window_store
from tenants import transaction

HAND_TO_AGENT: Final = "hand_to_agent"
HAND_BACK: Final = "hand_back"
TOOL_NAMES: Final = frozenset({HAND_TO_AGENT, HAND_BACK})
MAX_REASON_CHARACTERS = 500
NO_ARGUMENTS: Final = {
    "type": "object", "properties": {}, "required": [], "additionalProperties": False,
}  # fmt: skip
NOT_DONE: Final = "Error: not done, for the conversation was to be handed over."


OpenedBy = Escalation.OpenedBy
Outcome = Escalation.Outcome
# A thread that this many agents had is escalated to a person instead of handed over.
MAX_AGENTS = 5
# Handovers that ended earlier do not count for MAX_AGENTS.
MAX_HANDOVER_AGE = timedelta(days=1)


# --- The tools of the language model -------------------------------------------------------------


def handover_tools(agent: Agent, *, can_hand_back: bool) -> list[dict[str, Any]]:
    """Return the handover tools that the agent can use, in OpenAI's format."""
    tools = []
    if agent.hands_to and (names := handover_targets(agent)):
        description = (
            "Hand this conversation to another agent, who answers the user from now on. Use it"
            " when the user needs that agent. Do not answer the message yourself then."
        )
        properties = {
            "agent": {"type": "string", "enum": sorted(names)},
            "reason": {"type": "string", "description": "The reason, for the record."},
        }
        schema = {**NO_ARGUMENTS, "properties": properties, "required": ["agent"]}
        tools.append(tool_catalog.function_tool(HAND_TO_AGENT, description, schema))
    if can_hand_back:
        description = (
            "Hand this conversation back to the agent that had it before you, when the user is"
            " done with what you are for. Do not answer the message yourself then."
        )
        tools.append(tool_catalog.function_tool(HAND_BACK, description, NO_ARGUMENTS))
    return tools


def run_handover_call(
    message: KonstructMessage, agent: Agent, completion: Completion, *, round_number: int
) -> bool:
    """Run the first handover call of a completion; the other calls are recorded as failed.

    A call that cannot be run is recorded as failed too, with the reason for the language model.

    Returns:
        Whether another agent or a person answers the message now.
    """
    calls = tool_calls.unsaved_calls(message, agent, completion, round_number)
    for call in calls:
        tool_calls.set_result(call, ToolCallState.FAILED, NOT_DONE)
    first = next(call for call in calls if call.name in TOOL_NAMES)
    with transaction.atomic():
        is_done, first.result = _run(message, agent, first)
        first.state = ToolCallState.DONE if is_done else ToolCallState.FAILED
        ToolCall.objects.bulk_create(calls, ignore_conflicts=True)
    return is_done


def _run(message: KonstructMessage, agent: Agent, call: ToolCall) -> tuple[bool, str]:
    """Run a handover call. Return whether it was done, and the result for the language model."""
    if call.name == HAND_BACK:
        if hand_back(Thread.of(message), agent):
            return True, "Handed back."
        return False, "Error: this conversation was not handed to you."
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    targets = handover_targets(agent)
    name, reason = arguments.get("agent"), arguments.get("reason")
    if not isinstance(name, str) or name not in targets:
        known = ", ".join(sorted(targets)) or "none"
        return False, f"Error: there is no agent {name!r} to hand to; there are: {known}"
    reason = str(reason)[:MAX_REASON_CHARACTERS] if reason else f"{agent.name} asked for {name}."
    opened = hand_over_by_agent(
        message, agent, targets[name].id, opened_by=OpenedBy.AGENT, reason=reason
    )
    if opened is None:
        return True, "Not done: somebody else has decided about this conversation."
    if opened.to_agent_id is None:
        return True, "A person was asked for instead."
    return True, f"Handed to {name}."


def handover_targets(agent: Agent) -> dict[str, Agent]:
    """Return the active agents that the agent may hand a conversation to, by name."""
    targets = Agent.objects.active().filter(pk__in=agent.hands_to)
    return {target.name: target for target in targets}


# --- Reading --------------------------------------------------------------------------------------


def agents_since_person(thread: Thread) -> set[UUID]:
    """Return the ids of the agents that had the thread since a person or program decided about it.

    Handovers that ended more than MAX_HANDOVER_AGE ago do not count.
    """
    rows = Escalation.objects.filter(**thread.as_filter).filter(
        Q(resolved_at__isnull=True) | Q(resolved_at__gte=Now() - MAX_HANDOVER_AGE)
    )
    agent_ids = {thread.agent_id}
    for row in rows.order_by("-opened_at", "-id"):
        if row.to_agent_id is None or row.outcome == Outcome.RESOLVED:
            break
        agent_ids.add(row.to_agent_id)
        if row.opened_by in (OpenedBy.PROGRAM, OpenedBy.PERSON):
            break
    return agent_ids


# --- By a person or a program ---------------------------------------------------------------------


def hand_over(
    thread: Thread, to_agent: UUID, *, opened_by: Escalation.OpenedBy, name: str, reason: str
) -> tuple[Escalation, bool]:
    """Hand the thread over to another agent, by a decision of a person or a program.

    The agent then answers the messages that are held for a person. It may have had the thread
    before.

    Returns:
        The handover, and whether it is new.

    Raises:
        AgentNotFound: this tenant has no such active agent.
        NothingToHandOver: the messages of the thread are addressed to this agent.
        NothingToEscalate: the user has no message in this thread.
        InvalidArgument: a text cannot be stored.
    """
    text_argument("reason", reason)
    id_argument("thread_id", thread.thread_id)
    agent = agents.find_agent(str(to_agent), active=True)
    if agent.id == thread.agent_id:
        raise exceptions.NothingToHandOver(
            f"{agent.name} is the agent of this thread already: resolve the open escalation."
        )
    with transaction.atomic():
        existing = escalations.lock_open_escalation(thread)
        if existing is not None and existing.to_agent_id == agent.id:
            return existing, False
        opened = _open_handover(
            thread, agent, existing, opened_by=opened_by, name=name, reason=reason
        )
    return opened, True


# --- By an agent ----------------------------------------------------------------------------------


def match_handover_rule(text: str, agent: Agent) -> tuple[UUID, str] | None:
    """Return the agent to hand over to by the first of the agent's rules that the text matches.

    Returns:
        The id of the other agent and the reason; None if the text matches no rule.
    """
    phrase = escalations.find_phrase(text, agent.hand_over_on)
    if phrase is None:
        return None
    return UUID(agent.hand_over_on[phrase]), f"The message says {phrase!r}."


def hand_over_by_agent(
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
        existing = escalations.lock_open_escalation(thread)
        current_id = thread.agent_id if existing is None else existing.to_agent_id
        if current_id != from_agent.id:
            return None
        agent, refusal = next_agent(to_agent, agents_since_person(thread))
        if agent is not None:
            return _open_handover(
                thread,
                agent,
                existing,
                opened_by=opened_by,
                name=from_agent.name,
                reason=reason,
                message=message,
            )
        reason = refusal_reason(from_agent, refusal, reason)
        return escalations.escalate_message(message, OpenedBy.RULE, reason)


def next_agent(to_agent: UUID, agents_so_far: Collection[UUID]) -> tuple[Agent | None, str]:
    """Return the agent to hand a thread over to; or None, and why it cannot be handed over.

    Args:
        to_agent: the id of the agent that a rule or a language model names.
        agents_so_far: ids of the agents that had the thread since a person decided about it.
    """
    agent = Agent.objects.active().filter(pk=to_agent).first()
    if agent is None:
        return None, "the agent is not there, or not active"
    if agent.id in agents_so_far:
        return None, f"{agent.name} had this conversation already"
    if len(agents_so_far) >= MAX_AGENTS:
        return None, f"{len(agents_so_far)} agents had this conversation already"
    return agent, ""


def refusal_reason(from_agent: Agent, refusal: str, reason: str) -> str:
    """Return the reason of an escalation that replaces a handover."""
    return f"{from_agent.name} could not hand over ({refusal}): {reason}"


def hand_back(thread: Thread, agent: Agent) -> bool:
    """Hand the thread back to the agent that had it before. Inactive agents are skipped.

    Returns:
        False if the agent does not have the thread.
    """
    with transaction.atomic():
        handover = escalations.lock_open_escalation(thread)
        if handover is None or handover.to_agent_id != agent.id:
            return False
        escalations.write_key(thread)
        escalations.end(handover, Outcome.HANDED_BACK, by=agent.name)
        previous = _previous_handover(handover)
        if previous is not None:
            Escalation.objects.create(
                **thread.as_filter,
                channel=handover.channel,
                message_id=handover.message_id,
                to_agent_id=previous.to_agent_id,
                from_agent_id=previous.from_agent_id,
                opened_by=OpenedBy.AGENT,
                opened_by_name=agent.name,
                reason=f"{agent.name} handed it back.",
            )
    return True


# --- Inside ---------------------------------------------------------------------------------------


def _open_handover(
    thread: Thread,
    agent: Agent,
    existing: Escalation | None,
    *,
    opened_by: Escalation.OpenedBy,
    name: str,
    reason: str,
    message: KonstructMessage | None = None,
) -> Escalation:
    """Open the handover, and release the messages that are held for a person."""
    escalations.write_key(thread)
    channel = escalations.channel_of(thread) if message is None else message.channel
    if existing is not None:
        escalations.end(existing, Outcome.HANDED_ON, by=name)
    handover = Escalation.objects.create(
        **thread.as_filter,
        channel=channel,
        message_id=None if message is None else message.id,
        to_agent_id=agent.id,
        from_agent_id=(existing and existing.to_agent_id) or thread.agent_id,
        opened_by=opened_by,
        opened_by_name=name,
        reason=reason,
    )
    for pending in escalations.held_replies(thread):
        replies.release(konstruct_message(pending.message))
    return handover


def _previous_handover(handover: Escalation) -> Escalation | None:
    """Return the last handover to an agent that is active; None: the first agent answers again."""
    thread = Thread.of(handover)
    rows = Escalation.objects.to_agents().filter(
        **thread.as_filter, opened_at__lt=handover.opened_at
    )
    agent_id, seen = handover.from_agent_id, {handover.to_agent_id}
    while agent_id not in (None, thread.agent_id) and agent_id not in seen:
        seen.add(agent_id)
        previous = rows.filter(to_agent_id=agent_id).order_by("-opened_at").first()
        if previous is None or Agent.objects.active().filter(pk=agent_id).exists():
            return previous
        agent_id = previous.from_agent_id
    return None


# --- Turns for the prompt -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PromptTurns:
    """The turns of a prompt, and clauses about them for the system prompt."""

    turns: list[dict[str, Any]]
    clauses: tuple[str, ...] = ()


def prompt_turns(message: KonstructMessage, agent: Agent) -> PromptTurns | None:
    """Return the turns for the agent's answer to the message; None: its window has all of them.

    The turns of the thread are needed after a handover, and if several people speak in it.
    """
    is_handed_over = agent.id != message.agent_id
    turns: Sequence[Mapping[str, Any]]
    if message.channel in window_store.shared_channels():
        turns = window_store.get_thread_turns(message.tenant_id, message.thread_id, message.channel)
    elif is_handed_over:  # the thread belongs to one user and one agent
        rows = models.Message.objects.not_excluded().filter(**Thread.of(message).as_filter)
        newest = rows.order_by("-created_at", "-number")[: conf.WINDOW + 1]
        turns = [window_store.ThreadTurn.of(row).as_dict() for row in reversed(newest)]
    else:
        return None
    at = message.created_at.isoformat() if message.created_at else ""
    # Without the message itself, and later messages of users.
    turns = [
        turn
        for turn in turns
        if turn.get("message_id") != str(message.id)
        and (turn["role"] == models.Role.ASSISTANT or turn.get("at", "") <= at)
    ]
    if not is_handed_over and not _have_other_speakers(turns, message):
        return None
    return with_window(message, agent, turns)


def program_turns(message: KonstructMessage, history: Sequence[Mapping[str, Any]]) -> PromptTurns:
    """Return the turns that the program sent with the message.

    A turn that the thread has as a message gets its id, so that it is not recalled as well.
    """
    newest = models.Message.objects.filter(**Thread.of(message).as_filter).order_by(
        "-created_at", "-number"
    )
    rows = newest.values_list("role", "content", "pk")[: 2 * len(history)]
    ids = {(role, content): str(pk) for role, content, pk in rows}
    return PromptTurns(
        [{**turn, "message_id": ids.get((turn["role"], turn["content"]), "")} for turn in history]
    )


def with_window(
    message: KonstructMessage, agent: Agent, turns: Sequence[Mapping[str, Any]]
) -> PromptTurns:
    """Return the agent's window with the user, followed by the turns of the thread.

    Args:
        message: the message to answer.
        agent: the agent that answers it.
        turns: the thread's turns before the message, from `ThreadTurn.as_dict`.
    """
    is_handed_over = agent.id != message.agent_id
    names_speakers = _have_other_speakers(turns, message)
    clauses = []
    if is_handed_over:
        clauses.append(builder.HANDED_OVER_CLAUSE.format(name=agent.name))
    if names_speakers:
        speaker = " ".join((message.name or message.user_id).split())
        clauses.append(builder.SEVERAL_SPEAKERS_CLAUSE.format(speaker=speaker))
    shown = [_prompt_turn(turn, agent, is_handed_over, names_speakers) for turn in turns]
    shown_ids = {turn["message_id"] for turn in shown}
    window = short_term.get_recent_messages(message.tenant_id, agent.id, message.user_id)
    window = [turn for turn in window if turn.get("message_id") not in shown_ids]
    return PromptTurns([*window, *shown], tuple(clauses))


def _have_other_speakers(turns: Sequence[Mapping[str, Any]], message: KonstructMessage) -> bool:
    speakers = {turn["user_id"] for turn in turns if turn["role"] == models.Role.USER}
    return bool(speakers - {message.user_id})


def _prompt_turn(
    turn: Mapping[str, Any], agent: Agent, is_handed_over: bool, names_speakers: bool
) -> dict[str, Any]:
    """Return the turn for the agent's prompt. Turns of other speakers begin with their names."""
    name, content = turn.get("name", ""), turn["content"]
    if turn["role"] == models.Role.USER:
        if names_speakers:
            content = with_speaker(name or turn["user_id"], content)
    # Of another agent; by its name if the turn has no agent's id.
    elif turn["answered_by"] != str(agent.id) if turn.get("answered_by") else name != agent.name:
        content = with_speaker(name or "Assistant", content)
    message_id = turn["message_id"]
    if is_handed_over:  # the agent remembers a copy of the turn, with this id
        message_id = str(transcript.copy_id(message_id, agent.id))
    return {
        "role": turn["role"],
        "content": content,
        "message_id": message_id,
        "source_id": turn["message_id"],
        "at": turn.get("at", ""),
    }
