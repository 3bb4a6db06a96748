"""The turns of a thread for an agent whose own window does not have them.

An agent's window has its own turns with the user. If the thread was handed to it, or if several
people speak in it, the thread's turns follow, with the names of their speakers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from konstruct.orchestrator.builder import HANDED_OVER_CLAUSE, SEVERAL_SPEAKERS_CLAUSE
from konstruct.orchestrator.messages import KonstructMessage, Thread
from konstruct.orchestrator.models import Agent
from memory import short_term
from memory.conf import WINDOW
from memory.context.chat import said_by
from memory.conversations.copies import copy_id
from memory.conversations.thread_window import (
    ThreadTurn,
    append_to_thread,
    get_thread_turns,
    sharing,
)
from memory.models import Message, Role
from tenants import transaction


@dataclass(frozen=True, slots=True)
class PromptTurns:
    """The turns of a prompt, and clauses about them for the system prompt."""

    turns: list[dict[str, Any]]
    clauses: tuple[str, ...] = ()


def note(message: Message) -> None:
    """Append a message to its thread's window after the commit, if the channel shares threads."""
    if are_shared(message.channel):
        transaction.on_commit(partial(append_to_thread, message.tenant_id, message))


def are_shared(channel: str) -> bool:
    """Return whether several people may speak in a thread of the channel."""
    return channel in sharing()


def session_of(message: KonstructMessage, agent: Agent) -> PromptTurns | None:
    """Return the turns for the agent's answer to the message; None: only its own window.

    Queried only in the thread of another agent, or in one that people may share.
    """
    is_guest = agent.id != message.agent_id
    is_shared = are_shared(message.channel)
    turns = [turn for turn in _turns(message, is_shared) if _is_before(turn, message)]
    if not is_guest and not _are_several(turns, message):
        return None
    return with_turns(message, agent, turns)


def with_turns(
    message: KonstructMessage, agent: Agent, turns: Sequence[Mapping[str, Any]]
) -> PromptTurns:
    """Return the agent's own window with the user, followed by the turns of the thread.

    Args:
        message: the message to answer.
        agent: the agent that answers it.
        turns: the thread's turns before the message, from `ThreadTurn.as_dict`.
    """
    is_guest, are_several = agent.id != message.agent_id, _are_several(turns, message)
    clauses = []
    if is_guest:
        clauses.append(HANDED_OVER_CLAUSE.format(name=agent.name))
    if are_several:
        speaker = " ".join((message.name or message.user_id).split())
        clauses.append(SEVERAL_SPEAKERS_CLAUSE.format(speaker=speaker))
    shown = [_shown(turn, agent, is_guest, are_several) for turn in turns]
    return PromptTurns(_after_window(message, agent, shown), tuple(clauses))


def _are_several(turns: Sequence[Mapping[str, Any]], message: KonstructMessage) -> bool:
    speakers = {turn["user_id"] for turn in turns if turn["role"] == Role.USER}
    return bool(speakers - {message.user_id})


def _turns(message: KonstructMessage, is_shared: bool) -> list[dict[str, Any]]:
    """Return the thread's last turns, oldest first.

    In channels without shared threads, a thread belongs to one user and one agent.
    """
    if is_shared:
        return get_thread_turns(message.tenant_id, message.thread_id, message.channel)
    rows = Message.objects.filter(**Thread.of(message).named).order_by("-created_at", "-number")
    return [ThreadTurn.of(row).as_dict() for row in reversed(rows[: WINDOW + 1])]


def _is_before(turn: Mapping[str, Any], message: KonstructMessage) -> bool:
    """Return whether the turn is before the message; later messages of people are left out."""
    if turn.get("message_id") == str(message.id):
        return False
    at = message.created_at.isoformat() if message.created_at else ""
    return turn["role"] == Role.ASSISTANT or turn.get("at", "") <= at


def _after_window(
    message: KonstructMessage, agent: Agent, turns: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the agent's own window with the user without these turns, followed by these."""
    shown = {turn["message_id"] for turn in turns}
    window = short_term.get_recent_messages(message.tenant_id, agent.id, message.user_id)
    return [*(turn for turn in window if turn.get("message_id") not in shown), *turns]


def _shown(
    turn: Mapping[str, Any], agent: Agent, is_guest: bool, are_several: bool
) -> dict[str, Any]:
    """Return the turn for the agent's prompt: turns of others begin with their names."""
    name, content = turn.get("name", ""), turn["content"]
    if turn["role"] == Role.USER:
        content = said_by(name or turn["user_id"], content) if are_several else content
    else:
        said_it = turn.get("answered_by")
        if said_it != str(agent.id) if said_it else name != agent.name:
            content = said_by(name or "Assistant", content)
    # A guest's memory of the turn is a copy with another id.
    message_id = turn["message_id"]
    shown_id = str(copy_id(message_id, agent.id)) if is_guest else message_id
    return {
        "role": turn["role"],
        "content": content,
        "message_id": shown_id,
        "at": turn.get("at", ""),
    }
