"""The turns of a thread for a prompt, if the agent's window does not have them.

The window of an agent has its own turns with the user. After a handover, and if several people
speak in the thread, the turns of the thread follow, with the names of their speakers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from konstruct.orchestrator.builder import HANDED_OVER_CLAUSE, SEVERAL_SPEAKERS_CLAUSE
from konstruct.orchestrator.messages import KonstructMessage, Thread
from konstruct.orchestrator.models import Agent
from memory import short_term
from memory.conf import WINDOW
from memory.context.chat import with_speaker
from memory.conversations.thread_window import (
    ThreadTurn,
    get_thread_turns,
    shared_channels,
)
from memory.conversations.transcript import copy_id
from memory.models import Message, Role


@dataclass(frozen=True, slots=True)
class PromptTurns:
    """The turns of a prompt, and clauses about them for the system prompt."""

    turns: list[dict[str, Any]]
    clauses: tuple[str, ...] = ()


def is_shared_channel(channel: str) -> bool:
    """Return whether several people may speak in a thread of the channel."""
    return channel in shared_channels()


def prompt_turns(message: KonstructMessage, agent: Agent) -> PromptTurns | None:
    """Return the turns for the agent's answer to the message; None: its window has all of them.

    Call it after a handover, or in a channel with shared threads.
    """
    is_handed_over = agent.id != message.agent_id
    turns = [turn for turn in _thread_turns(message) if _is_before(turn, message)]
    if not is_handed_over and not _have_other_speakers(turns, message):
        return None
    return with_window(message, agent, turns)


def program_turns(message: KonstructMessage, history: Sequence[Mapping[str, Any]]) -> PromptTurns:
    """Return the turns that the program sent with the message.

    A turn that the thread has as a message gets its id, so that it is not recalled as well.
    """
    newest = Message.objects.filter(**Thread.of(message).as_filter).order_by(
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
        clauses.append(HANDED_OVER_CLAUSE.format(name=agent.name))
    if names_speakers:
        speaker = " ".join((message.name or message.user_id).split())
        clauses.append(SEVERAL_SPEAKERS_CLAUSE.format(speaker=speaker))
    shown = [_prompt_turn(turn, agent, is_handed_over, names_speakers) for turn in turns]
    shown_ids = {turn["message_id"] for turn in shown}
    window = short_term.get_recent_messages(message.tenant_id, agent.id, message.user_id)
    window = [turn for turn in window if turn.get("message_id") not in shown_ids]
    return PromptTurns([*window, *shown], tuple(clauses))


def _have_other_speakers(turns: Sequence[Mapping[str, Any]], message: KonstructMessage) -> bool:
    speakers = {turn["user_id"] for turn in turns if turn["role"] == Role.USER}
    return bool(speakers - {message.user_id})


def _thread_turns(message: KonstructMessage) -> list[dict[str, Any]]:
    """Return the thread's last turns, oldest first.

    In channels without shared threads, a thread belongs to one user and one agent.
    """
    if is_shared_channel(message.channel):
        return get_thread_turns(message.tenant_id, message.thread_id, message.channel)
    rows = Message.objects.filter(**Thread.of(message).as_filter).order_by("-created_at", "-number")
    return [ThreadTurn.of(row).as_dict() for row in reversed(rows[: WINDOW + 1])]


def _is_before(turn: Mapping[str, Any], message: KonstructMessage) -> bool:
    """Return False for the message itself, and for later messages of users."""
    if turn.get("message_id") == str(message.id):
        return False
    at = message.created_at.isoformat() if message.created_at else ""
    return turn["role"] == Role.ASSISTANT or turn.get("at", "") <= at


def _prompt_turn(
    turn: Mapping[str, Any], agent: Agent, is_handed_over: bool, names_speakers: bool
) -> dict[str, Any]:
    """Return the turn for the agent's prompt. Turns of other speakers begin with their names."""
    name, content = turn.get("name", ""), turn["content"]
    if turn["role"] == Role.USER:
        if names_speakers:
            content = with_speaker(name or turn["user_id"], content)
    elif not _is_answer_of(turn, agent):
        content = with_speaker(name or "Assistant", content)
    message_id = turn["message_id"]
    if is_handed_over:  # the agent remembers a copy of the turn, with this id
        message_id = str(copy_id(message_id, agent.id))
    return {
        "role": turn["role"],
        "content": content,
        "message_id": message_id,
        "source_id": turn["message_id"],
        "at": turn.get("at", ""),
    }


def _is_answer_of(turn: Mapping[str, Any], agent: Agent) -> bool:
    """Return whether the agent wrote the turn; by its name if the turn has no agent's id."""
    if answered_by := turn.get("answered_by"):
        return bool(answered_by == str(agent.id))
    return bool(turn.get("name", "") == agent.name)
