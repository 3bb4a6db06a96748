"""The short-term window: an agent's last turns with a user, in the cache, for as long as it lives.

The transcript in Postgres is the truth and the window its copy: one that was lost is rebuilt, one
that was cleared on purpose stays cleared. Nothing expires.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from redis.exceptions import RedisError

from memory.arguments import count_argument, id_argument, role_argument
from memory.conf import WINDOW
from memory.conversations import thread_window, window_store
from memory.conversations.reading import Conversation, Place
from memory.conversations.turns import Turn, decode
from memory.exceptions import InvalidArgument, WindowNotCleared
from memory.ids import new_id_argument
from tenants.context import asynchronous, known_tenant, tenant_scope
from tenants.exceptions import UnknownTenant
from tenants.redis_keys import memory_short_key

logger = logging.getLogger(__name__)


def get_recent_messages(
    tenant_id: UUID | str, agent_id: UUID | str, user_id: str, n: int = WINDOW
) -> list[dict[str, Any]]:
    """The last n turns of the window, oldest first.

    A window that the cache has lost is rebuilt from the transcript; where the cache is away, the
    transcript is read. A tenant that does not exist has no turns.

    Returns:
        Dicts with "role" and "content"; turns of the transcript also have "message_id", "at", and
        "name" where the speaker gave one. What is not a turn is passed over.

    Raises:
        InvalidArgument: n is no whole number or negative, or user_id is no text.
        InvalidKeyPart: an id cannot be part of a cache key.
    """
    n = count_argument("n", n, minimum=0)
    window = _Window.of(tenant_id, agent_id, user_id)
    if n == 0:
        return []
    size = max(n, WINDOW)
    with window.entered():
        try:
            entries = window_store.read(window.key, n)
            if not entries:
                turns, cleared = window.transcript(size)
                window_store.write(window.key, turns, window=size, cleared=cleared)
                return [turn.as_dict() for turn in turns[-n:]]
            if None in map(decode, entries):
                entries = window_store.read(window.key)
        except RedisError as error:
            logger.warning("window %s is read from the transcript: %s", window.key, error)
            turns, _ = window.transcript(size)
            return [turn.as_dict() for turn in turns[-n:]]
    return [turn for turn in map(decode, entries) if turn is not None][-n:]


aget_recent_messages = asynchronous(get_recent_messages)


def append_message(
    tenant_id: UUID | str,
    agent_id: UUID | str,
    user_id: str,
    role: str,
    content: str,
    window: int = WINDOW,
) -> None:
    """Append one turn, and keep the last `window` turns. Twice is two turns.

    A cache that is away loses the turn, with a log line: the window is a copy, and no reply may
    fail for it. What must not be lost is a message of the transcript (see `append_turns`).

    Raises:
        InvalidArgument: the role, the content, user_id or the window cannot be.
        InvalidKeyPart: an id cannot be part of a cache key.
    """
    size = count_argument("window", window)
    if not isinstance(content, str):
        raise InvalidArgument(f"content={content!r} is not text")
    turn = Turn(role=role_argument(role), content=content)
    new_id_argument("user_id", user_id)
    target = _Window.of(tenant_id, agent_id, user_id)
    with target.entered(), _logged_if_away(target):
        while not window_store.append(target.key, [turn], window=size):
            turns, cleared = target.transcript(size)
            if window_store.write(target.key, [*turns, turn], window=size, cleared=cleared):
                return


aappend_message = asynchronous(append_message)


def append_turns(
    tenant_id: UUID | str,
    agent_id: UUID | str,
    user_id: str,
    turns: Sequence[Turn],
    window: int = WINDOW,
) -> None:
    """Append turns of the transcript, each once however often this is run.

    One round trip to the cache. Where the window turns out to have lost something (all of it, or
    the turn before these), it is rebuilt from the transcript, which holds these turns already. A
    cache that is away is logged; the next turn will find the gap.

    Args:
        turns: a message and its reply, with their message ids; the reply is the last.

    Raises:
        InvalidArgument: a turn has no message_id, or user_id or the window cannot be.
    """
    size = count_argument("window", window)
    for turn in turns:
        if not turn.message_id:
            raise InvalidArgument(f"{turn!r} has no message_id: see append_message")
    target = _Window.of(tenant_id, agent_id, user_id)
    if not turns:
        return
    with target.entered(), _logged_if_away(target):
        place = target.place_of(turns[-1])
        if place is not None and place.cleared:
            return
        before = "" if place is None else str(place.before or window_store.FIRST)
        while not window_store.append(target.key, turns, window=size, before=before):
            standing, cleared = target.transcript(size)
            # What the transcript knows is in these turns, or has left the window since.
            if place is None:
                standing = [*standing, *turns]
            if window_store.write(target.key, standing, window=size, cleared=cleared, replace=True):
                return


aappend_turns = asynchronous(append_turns)


def clear_window(tenant_id: UUID | str, agent_id: UUID | str, user_id: str) -> None:
    """Empty the window for good: no rebuild brings these turns back. Long-term memory stays.

    The turns leave the windows of shared threads too (`memory.conversations.thread_window`).

    Raises:
        UnknownTenant: no such tenant.
        WindowNotCleared: the cache is away, so that its copy may come back with it: clear again.
    """
    window = _Window.of(tenant_id, agent_id, user_id)
    with window.entered():
        number = 0
        if window.conversation is not None:
            with known_tenant(tenant_id):
                number = window.conversation.clear()
        try:
            window_store.clear(window.key, number)
            if number and window.conversation is not None:
                pair = window.conversation.agent_id, window.conversation.user_id
                thread_window.forget_threads(tenant_id, thread_window.threads_of(*pair))
        except RedisError as error:
            raise WindowNotCleared(
                f"the window {window.key} is cleared in the transcript, but its copy in the cache"
                f" could not be removed: clear it again ({error})"
            ) from error


aclear_window = asynchronous(clear_window)


def rebuild_window(tenant_id: UUID | str, agent_id: UUID | str, user_id: str) -> None:
    """Replace the window by what the transcript has; what was appended by itself is lost."""
    window = _Window.of(tenant_id, agent_id, user_id)
    with window.entered():
        turns, cleared = window.transcript(WINDOW)
        window_store.write(window.key, turns, window=WINDOW, cleared=cleared, replace=True)


def is_tail(entries: Sequence[bytes], conversation: Conversation) -> bool:
    """Whether a window that the cache holds is the end of its transcript.

    Turns that were appended by themselves are in no transcript, and may have pushed others out.
    """
    held = [turn for turn in map(decode, entries) if turn is not None]
    ids = [turn["message_id"] for turn in held if "message_id" in turn]
    turns = conversation.recent_turns(
        max(WINDOW, len(ids)), after_number=conversation.cleared_up_to()
    )
    if not ids:
        return not turns or len(held) >= WINDOW
    return ids == [turn.message_id for turn in turns][-len(ids) :]


def refresh_window(tenant_id: UUID | str, agent_id: UUID | str, user_id: str) -> None:
    """Rebuild a window that the cache holds and that is not the end of its transcript any more.

    For who has written to the transcript without `append_turns`. A cache that is away is logged.
    """
    window = _Window.of(tenant_id, agent_id, user_id)
    if window.conversation is None:
        return
    with window.entered(), _logged_if_away(window):
        entries = window_store.read(window.key)
        if entries and not is_tail(entries, window.conversation):
            turns, cleared = window.transcript(WINDOW)
            window_store.write(window.key, turns, window=WINDOW, cleared=cleared, replace=True)


@dataclass(frozen=True)
class _Window:
    """One window: its key, and the conversation that it is a copy of.

    Without a conversation where an id is no UUID: then no transcript can have it, and the window
    lives in the cache alone.
    """

    key: str
    conversation: Conversation | None

    @classmethod
    def of(cls, tenant_id: UUID | str, agent_id: UUID | str, user_id: str) -> Self:
        tenant, agent = _as_uuid(tenant_id), _as_uuid(agent_id)
        id_argument("user_id", user_id)
        key = memory_short_key(tenant or tenant_id, agent or agent_id, user_id)
        if tenant is None or agent is None:
            return cls(key, None)
        return cls(key, Conversation(tenant, agent, user_id))

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Inside the tenant, so that code which serves one cannot reach another's window."""
        if self.conversation is None:
            yield
            return
        with tenant_scope(self.conversation.tenant_id):
            yield

    def transcript(self, size: int) -> tuple[list[Turn], int]:
        """The turns that the window should hold, and the last clear; nothing if unknown."""
        if self.conversation is None:
            return [], 0
        try:
            with known_tenant(self.conversation.tenant_id):
                cleared = self.conversation.cleared_up_to()
                return self.conversation.recent_turns(size, after_number=cleared), cleared
        except UnknownTenant:
            return [], 0

    def place_of(self, turn: Turn) -> Place | None:
        """Where the turn stands in the transcript, None for one that is not in it."""
        if self.conversation is None or _as_uuid(turn.message_id) is None:
            return None
        try:
            with known_tenant(self.conversation.tenant_id):
                return self.conversation.place_of(turn.message_id)
        except UnknownTenant:
            return None


def _as_uuid(value: UUID | str) -> UUID | None:
    if isinstance(value, UUID):
        return value
    try:
        return UUID(value)
    except (ValueError, AttributeError, TypeError):
        return None


@contextmanager
def _logged_if_away(window: _Window) -> Iterator[None]:
    try:
        yield
    except RedisError as error:
        logger.warning("window %s was not appended to: %s", window.key, error)
