"""The short-term window: an agent's last turns with a user, in the cache, without a time limit.

The transcript in Postgres is the source and the window a copy: a lost one is rebuilt, a cleared one
stays cleared. A reader compares the copy with the transcript, so that a cache that is older or
newer than the database changes no prompt. Nothing expires.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self
from uuid import UUID

from redis.exceptions import RedisError

from memory import arguments, conf, exceptions, models
from memory.conversations import window_store
from memory.conversations.window_store import Conversation, Position, Turn, Window, decode_all
from tenants import naming, redis_keys, transaction
from tenants.context import known_tenant, tenant_scope
from tenants.exceptions import UnknownTenant

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class UserWindow(Window):
    """The window of an agent and a user.

    Without a conversation if an id is no UUID: no transcript can have it, and the window exists in
    the cache only.
    """

    key: str
    conversation: Conversation | None

    @classmethod
    def of(cls, tenant_id: UUID | str, agent_id: UUID | str, user_id: str) -> Self:
        tenant, agent = naming.as_uuid(tenant_id), naming.as_uuid(agent_id)
        arguments.id_argument("user_id", user_id)
        key = redis_keys.memory_short_key(tenant or tenant_id, agent or agent_id, user_id)
        if tenant is None or agent is None:
            return cls(key, None)
        return cls(key, Conversation(tenant, agent, user_id))

    def in_tenant(self) -> AbstractContextManager[object]:
        """Enter the tenant, so that code of one tenant cannot reach another's window."""
        if self.conversation is None:
            return nullcontext()
        return tenant_scope(self.conversation.tenant_id)

    def transcript(self, size: int) -> list[Turn]:
        """Return the turns of the window from the transcript."""
        if self.conversation is None:
            return []
        with suppress(UnknownTenant), known_tenant(self.conversation.tenant_id, savepoint=False):
            return self.conversation.recent_turns(size)
        return []

    def count_current(self, message_ids: Collection[str]) -> int:
        """Return how many of the messages the window may have: all without a conversation."""
        if self.conversation is None:
            return len(message_ids)
        with suppress(UnknownTenant), known_tenant(self.conversation.tenant_id, savepoint=False):
            return self.conversation.count_current(message_ids)
        return len(message_ids)

    def position_of(self, turn: Turn) -> Position:
        """Return the position of the turn in the transcript: see `Conversation.position_of`."""
        if self.conversation is None or naming.as_uuid(turn.message_id) is None:
            return False, ""
        with known_tenant(self.conversation.tenant_id, savepoint=False):
            return self.conversation.position_of(turn.message_id)

    @contextmanager
    def log_outage(self) -> Iterator[None]:
        """Run the block, which changes the copy. Log a line instead of an error of the cache."""
        try:
            yield
        except RedisError as error:
            logger.warning("window %s was not appended to: %s", self.key, error)


def _require_tenant(tenant_id: UUID | str) -> None:
    """Raise InvalidTenantId or UnknownTenant if there is no such tenant."""
    with known_tenant(tenant_id):
        models.WindowClear.objects.exists()


def get_recent_messages(
    tenant_id: UUID | str, agent_id: UUID | str, user_id: str, n: int = conf.WINDOW
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
    n = arguments.count_argument("n", n, minimum=0)
    window = UserWindow.of(tenant_id, agent_id, user_id)
    if n == 0:
        return []
    size = max(n, conf.WINDOW)
    with window.in_tenant():
        try:
            return window.read(size)[-n:]
        except RedisError as error:
            logger.warning("window %s is read from the transcript: %s", window.key, error)
            return [turn.as_dict() for turn in window.transcript(size)[-n:]]


def append_message(
    tenant_id: UUID | str,
    agent_id: UUID | str,
    user_id: str,
    role: str,
    content: str,
    window: int = conf.WINDOW,
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
    size = arguments.count_argument("window", window)
    if not isinstance(content, str):
        raise exceptions.InvalidArgument(f"content={content!r} is not text")
    turn = Turn(role=arguments.role_argument(role), content=content)
    target = UserWindow.of(tenant_id, agent_id, user_id)
    if isinstance(role, TurnRole) and role.collect(target.key, content):
        return
    arguments.new_id_argument("user_id", user_id)
    _require_tenant(tenant_id)
    with target.in_tenant(), target.log_outage():
        target.read(size)  # writes a copy that was lost
        window_store.append(target.key, [turn], window=size, may_create=True)


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


def position_of(tenant_id: UUID, agent_id: UUID, user_id: str, message_id: UUID) -> Position:
    """Return the position of a turn for `append_turns`, in the transaction that writes it."""
    return Conversation(tenant_id, agent_id, user_id).position_of(str(message_id))


def append_turns(
    tenant_id: UUID | str,
    agent_id: UUID | str,
    user_id: str,
    turns: Sequence[Turn],
    window: int = conf.WINDOW,
    *,
    last: Turn | None = None,
    position: Position | None = None,
) -> None:
    """Append turns of the transcript, each once, however often it is called.

    One round trip to the cache. Call it after the commit of the turns: readers do not show a turn
    that the transcript lacks. If the window has lost turns (all of them, or the one before these),
    it is rebuilt from the transcript, which has these turns already. While the cache is down, a
    line is logged, and the next turn finds the gap.

    Args:
        turns: a message and its reply, with their message ids; the reply is the last.
        last: the turn of the transcript that ends these, if `turns` may lack it.
        position: of the last turn, if the caller has read it.

    Raises:
        InvalidArgument: a turn has no message_id, or user_id or the window is invalid.
        UnknownTenant: no such tenant.
    """
    size = arguments.count_argument("window", window)
    for turn in turns:
        if not turn.message_id:
            raise exceptions.InvalidArgument(f"{turn!r} has no message_id: see append_message")
    target = UserWindow.of(tenant_id, agent_id, user_id)
    if not turns:
        return
    if target.conversation is None:
        _require_tenant(tenant_id)
        with target.log_outage():
            window_store.append(target.key, turns, window=size, may_create=True)
        return
    with target.in_tenant(), target.log_outage():
        is_cleared, before = position or target.position_of(last or turns[-1])
        if not is_cleared:
            target.append(turns, size, before)


def clear_window(tenant_id: UUID | str, agent_id: UUID | str, user_id: str) -> None:
    """Clear the window for good: no rebuild restores these turns. Long-term memory stays.

    The turns leave the windows of shared threads too (`memory.conversations.window_store`). The
    clear is a row in Postgres, which every reader checks. The copies in the cache are removed after
    the commit of the current transaction; if the cache is down, a line is logged.

    Raises:
        UnknownTenant: no such tenant.
    """
    window = UserWindow.of(tenant_id, agent_id, user_id)
    if window.conversation is None:
        window_store.delete(window.key)
        return
    with known_tenant(tenant_id) as tenant:
        window.conversation.clear()
        threads = window_store.threads_of(window.conversation.agent_id, user_id)
        transaction.on_commit(partial(_delete_copies, tenant, window.key, threads))


def _delete_copies(tenant_id: UUID, key: str, threads: Sequence[str]) -> None:
    try:
        window_store.delete(key)
        window_store.delete_threads(tenant_id, threads)
    except RedisError as error:
        logger.warning("window %s is cleared; the cache still has its copy: %s", key, error)


def delete_window(tenant_id: UUID | str, agent_id: UUID | str, user_id: str) -> None:
    """Delete the copy in the cache: the next reader writes it from the transcript.

    Turns that were only appended to the window are lost.
    """
    window_store.delete(UserWindow.of(tenant_id, agent_id, user_id).key)


def refresh_window(tenant_id: UUID | str, agent_id: UUID | str, user_id: str) -> None:
    """Delete the copy in the cache if it is not the end of its transcript any more.

    Call it after writing to the transcript without `append_turns`. Turns that were only appended to
    the window are in no transcript, and may have displaced others. While the cache is down, a line
    is logged.
    """
    window = UserWindow.of(tenant_id, agent_id, user_id)
    if window.conversation is None:
        return
    with window.in_tenant(), window.log_outage():
        turns = decode_all(window_store.read(window.key))
        ids = [turn["message_id"] for turn in turns if "message_id" in turn]
        expected = window.conversation.recent_turns(max(conf.WINDOW, len(ids)))
        last = [turn.message_id for turn in expected][-len(ids) :]
        is_full_without_messages = not ids and len(turns) >= conf.WINDOW
        if ids != last and not is_full_without_messages:
            window_store.delete(window.key)
