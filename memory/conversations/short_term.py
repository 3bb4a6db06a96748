"""The short-term window: an agent's last turns with a user, in the cache, without a time limit.

The transcript in Postgres is the source and the window a copy: a lost one is rebuilt, a cleared one
stays cleared. A reader compares the copy with the transcript, so that a cache that is older or
newer than the database changes no prompt. Nothing expires.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self
from uuid import UUID

from redis.exceptions import RedisError

from memory.arguments import count_argument, role_argument
from memory.conf import WINDOW
from memory.conversations import thread_window, window_store
from memory.conversations.conversation import Conversation, Turn, decode
from memory.conversations.window_store import (
    MAX_ATTEMPTS,
    WindowCopy,
    is_current,
    log_cache_outage,
)
from memory.exceptions import InvalidArgument
from memory.ids import new_id_argument
from tenants import transaction
from tenants.context import asynchronous, known_tenant

logger = logging.getLogger(__name__)


def get_recent_messages(
    tenant_id: UUID | str, agent_id: UUID | str, user_id: str, n: int = WINDOW
) -> list[dict[str, Any]]:
    """Return the last n turns of the window, oldest first.

    One query compares the copy in the cache with the transcript. The window is rebuilt from the
    transcript if the cache has lost it, or if one of its turns is cleared or missing in the
    transcript. While the cache is down, the transcript is read. A tenant that does not exist has no
    turns.

    Returns:
        Dicts with "role" and "content"; turns of the transcript also have "message_id", "at", and
        "name" if the speaker gave one. Other entries are skipped.

    Raises:
        InvalidArgument: n is no whole number or negative, or user_id is no text.
        InvalidKeyPart: an id cannot be part of a cache key.
    """
    n = count_argument("n", n, minimum=0)
    window = WindowCopy.of(tenant_id, agent_id, user_id)
    if n == 0:
        return []
    size = max(n, WINDOW)
    with window.in_tenant():
        try:
            return window.read(size)[-n:]
        except RedisError as error:
            logger.warning("window %s is read from the transcript: %s", window.key, error)
            turns, _ = window.transcript(size)
            return [turn.as_dict() for turn in turns[-n:]]


aget_recent_messages = asynchronous(get_recent_messages)


def append_message(
    tenant_id: UUID | str,
    agent_id: UUID | str,
    user_id: str,
    role: str,
    content: str,
    window: int = WINDOW,
) -> None:
    """Append one turn, and keep the last `window` turns. Calling it twice appends two turns.

    While the cache is down, the turn is lost, with a log line: the window is a copy, and no reply
    may fail for it. Turns that must not be lost are messages of the transcript (see
    `append_turns`).

    Raises:
        InvalidArgument: the role, the content, user_id or the window is invalid.
        InvalidKeyPart: an id cannot be part of a cache key.
        InvalidTenantId: tenant_id is not a UUID.
        UnknownTenant: no such tenant.
    """
    size = count_argument("window", window)
    if not isinstance(content, str):
        raise InvalidArgument(f"content={content!r} is not text")
    turn = Turn(role=role_argument(role), content=content)
    target = WindowCopy.to_write(tenant_id, agent_id, user_id)
    if isinstance(role, TurnRole) and role.collect(target.key, content):
        return
    new_id_argument("user_id", user_id)
    with target.in_tenant(), log_cache_outage(target):
        for _ in range(MAX_ATTEMPTS):
            turn = replace(turn, clear=target.clear_token())
            if window_store.append(target.key, [turn], window=size):
                return
            expected = window_store.read(target.key)
            # Another writer may have written the copy since, with a turn that only the copy has.
            # This call sees the copy that was read, or a later one, which is not replaced.
            if window_store.append(target.key, [turn], window=size):
                return
            written = target.write_transcript(size, more_turns=[turn], expected=expected)
            # A concurrent clear covers the written transcript, and not this turn.
            if written and target.clear_token() == turn.clear:
                return
        target.invalidate()


aappend_message = asynchronous(append_message)


class TurnRole(str):
    """The role of a turn of the transcript. `append_message` collects the turn instead of appending
    it: a wrapper with the documented parameters passes the turn on, and may change its text.
    """

    def __new__(cls, key: str, turn: Turn, collected: list[Turn]) -> Self:
        """Return the role.

        Args:
            key: of the window.
            turn: the turn.
            collected: gets the turn once; further calls with this role append at once.
        """
        role = super().__new__(cls, turn.role)
        role._key, role._turn, role._collected = key, turn, collected
        return role

    def collect(self, key: str, content: str) -> bool:
        """Collect the turn with this text; False for another window, and for a second call."""
        if key != self._key or self._turn is None:
            return False
        self._collected.append(replace(self._turn, content=content))
        self._turn = None
        return True

    _key: str
    _turn: Turn | None
    _collected: list[Turn]


def append_turns(
    tenant_id: UUID | str,
    agent_id: UUID | str,
    user_id: str,
    turns: Sequence[Turn],
    window: int = WINDOW,
    *,
    last: Turn | None = None,
) -> None:
    """Append turns of the transcript, each once, however often it is called.

    One round trip to the cache. Call it after the commit of the turns: readers do not show a turn
    that the transcript lacks. If the window has lost turns (all of them, or the one before these),
    it is rebuilt from the transcript, which has these turns already. While the cache is down, a
    line is logged, and the next turn finds the gap.

    Args:
        turns: a message and its reply, with their message ids; the reply is the last.
        last: the turn of the transcript that ends these, if `turns` may lack it.

    Raises:
        InvalidArgument: a turn has no message_id, or user_id or the window is invalid.
        UnknownTenant: no such tenant.
    """
    size = count_argument("window", window)
    for turn in turns:
        if not turn.message_id:
            raise InvalidArgument(f"{turn!r} has no message_id: see append_message")
    target = WindowCopy.to_write(tenant_id, agent_id, user_id)
    if not turns:
        return
    with target.in_tenant(), log_cache_outage(target):
        position = target.position_of(last or turns[-1])
        if position is not None and position.is_cleared:
            return
        before = ""
        if position is not None:
            before = str(position.previous_id or window_store.NO_PREVIOUS_TURN)
        # Turns without a position are not in the transcript.
        missing = turns if position is None else []
        for _ in range(MAX_ATTEMPTS):
            appended = window_store.append(target.key, turns, window=size, before=before)
            if appended or target.write_transcript(size, more_turns=missing, changed=turns):
                return
        target.invalidate()


aappend_turns = asynchronous(append_turns)


def clear_window(tenant_id: UUID | str, agent_id: UUID | str, user_id: str) -> None:
    """Clear the window for good: no rebuild restores these turns. Long-term memory stays.

    The turns leave the windows of shared threads too (`memory.conversations.thread_window`). The
    clear is a row in Postgres, which every reader checks. The copies in the cache are removed after
    the commit of the current transaction; if the cache is down, a line is logged.

    Raises:
        UnknownTenant: no such tenant.
    """
    window = WindowCopy.of(tenant_id, agent_id, user_id)
    if window.conversation is None:
        window_store.invalidate(window.key)
        return
    with known_tenant(tenant_id) as tenant:
        window.conversation.clear()
        threads = thread_window.threads_of(window.conversation.agent_id, user_id)
        transaction.on_commit(partial(_invalidate_copies, tenant, window.key, threads))


aclear_window = asynchronous(clear_window)


def _invalidate_copies(tenant_id: UUID, key: str, threads: Sequence[str]) -> None:
    try:
        window_store.invalidate(key)
        thread_window.invalidate_threads(tenant_id, threads)
    except RedisError as error:
        logger.warning("window %s is cleared; the cache still has its copy: %s", key, error)


def rebuild_window(tenant_id: UUID | str, agent_id: UUID | str, user_id: str) -> None:
    """Replace the window by the transcript.

    Turns that were only appended to the window are lost.
    """
    window = WindowCopy.of(tenant_id, agent_id, user_id)
    with window.in_tenant():
        window.rebuild()


def is_end_of_transcript(entries: Sequence[bytes], conversation: Conversation) -> bool:
    """Return whether the entries of a window are the end of its transcript.

    Turns that were only appended to the window are in no transcript, and may have displaced others.
    """
    clear = conversation.last_clear()
    turns = [turn for turn in map(decode, entries) if turn is not None]
    current = [turn for turn in turns if is_current(turn, clear.token)]
    ids = [turn["message_id"] for turn in current if "message_id" in turn]
    expected = conversation.recent_turns(max(WINDOW, len(ids)), after=clear)
    if not ids:
        return not expected or len(current) >= WINDOW
    return ids == [turn.message_id for turn in expected][-len(ids) :]


def refresh_window(tenant_id: UUID | str, agent_id: UUID | str, user_id: str) -> None:
    """Rebuild a window if it is not the end of its transcript any more.

    Call it after writing to the transcript without `append_turns`. While the cache is down, a line
    is logged.
    """
    window = WindowCopy.of(tenant_id, agent_id, user_id)
    if window.conversation is None:
        return
    with window.in_tenant(), log_cache_outage(window):
        entries = window_store.read(window.key)
        if entries and not is_end_of_transcript(entries, window.conversation):
            window.rebuild()
