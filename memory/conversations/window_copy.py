"""The copy of a window in the cache: compared with the transcript, and rebuilt from it."""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from redis.exceptions import RedisError

from memory.arguments import id_argument
from memory.conf import WINDOW
from memory.conversations import window_store
from memory.conversations.reading import Clear, Conversation, Place
from memory.conversations.turns import Turn, decode
from memory.conversations.window_store import MAX_ATTEMPTS
from tenants.context import known_tenant, tenant_scope
from tenants.exceptions import UnknownTenant
from tenants.redis_keys import memory_short_key

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WindowCopy:
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

    def read(self, size: int) -> list[dict[str, Any]]:
        """Return the turns of the copy, which is first written again if it is not current."""
        held = window_store.read(self.key)
        turns = [turn for turn in map(decode, held) if turn is not None]
        ids = {turn["message_id"] for turn in turns if "message_id" in turn}
        if turns:
            count, clear = self.count_current(ids)
            current = [_shown(turn) for turn in turns if is_current(turn, clear)]
            if current and count == len(ids):
                return current
        for _ in range(MAX_ATTEMPTS):
            found, last_clear = self.transcript(size)
            alone = _appended_alone(held, last_clear.token)
            entries: list[str | bytes] = [turn.encode() for turn in found]
            entries += alone
            if window_store.write(self.key, entries, window=size, held=held):
                break
            held = window_store.read(self.key)
        shown = [_shown(turn) for turn in map(decode, alone) if turn is not None]
        return [*(turn.as_dict() for turn in found), *shown][-size:]

    def write_transcript(
        self,
        size: int,
        *,
        and_turns: Sequence[Turn] = (),
        changed: Sequence[Turn] = (),
        held: Sequence[bytes] | None = None,
    ) -> bool:
        """Replace the copy by the transcript and more turns; False if it was changed meanwhile.

        Args:
            and_turns: turns that follow those of the transcript.
            changed: turns of the transcript as a wrapper of `append_message` has changed them.
            held: the entries of the copy when it was last read; by default they are read now.
        """
        held = window_store.read(self.key) if held is None else held
        found, _ = self.transcript(size)
        given = {turn.message_id: turn for turn in changed}
        shown = [given.get(turn.message_id, turn) for turn in found]
        entries = [turn.encode() for turn in (*shown, *and_turns)]
        return window_store.write(self.key, entries, window=size, held=held)

    def rebuild(self) -> None:
        """Replace the copy by the transcript."""
        for _ in range(MAX_ATTEMPTS):
            if self.write_transcript(WINDOW):
                return
        self.forget()

    def forget(self) -> None:
        """Remove the copy, which others change all the time: the next reader writes it."""
        logger.warning(
            "window %s was changed %s times while it was written: it is removed, and rebuilt by"
            " its next reader",
            self.key,
            MAX_ATTEMPTS,
        )
        window_store.forget(self.key)

    def transcript(self, size: int) -> tuple[list[Turn], Clear]:
        """The turns that the window should hold, and the last clear; nothing if unknown."""
        if self.conversation is None:
            return [], Clear()
        try:
            with known_tenant(self.conversation.tenant_id):
                clear = self.conversation.last_clear()
                return self.conversation.recent_turns(size, after=clear), clear
        except UnknownTenant:
            return [], Clear()

    def clear_token(self) -> str:
        """The token of the last clear."""
        return self.count_current([])[1]

    def count_current(self, message_ids: Collection[str]) -> tuple[int, str]:
        """How many of the messages the window may hold, and the last clear's token.

        All of them where there is no transcript that could have them.
        """
        if self.conversation is None:
            return len(message_ids), ""
        try:
            with known_tenant(self.conversation.tenant_id):
                return self.conversation.count_current(message_ids)
        except UnknownTenant:
            return len(message_ids), ""

    def place_of(self, turn: Turn) -> Place | None:
        """The place of the turn in the transcript, None if the transcript does not have it."""
        if self.conversation is None or _as_uuid(turn.message_id) is None:
            return None
        try:
            with known_tenant(self.conversation.tenant_id):
                return self.conversation.place_of(turn.message_id)
        except UnknownTenant:
            return None


def is_current(turn: Mapping[str, Any], clear: str) -> bool:
    """Whether a turn without a message was appended after the last clear; True for others."""
    return "message_id" in turn or turn.get("clear", "") == clear


def _shown(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in turn.items() if name != "clear"}


def _appended_alone(held: Sequence[bytes], clear: str) -> list[bytes]:
    """The entries at the end of the list that are in no transcript, since the last clear."""
    alone: list[bytes] = []
    for entry in reversed(held):
        turn = decode(entry)
        if turn is not None and "message_id" in turn:
            break
        if turn is not None and is_current(turn, clear):
            alone.insert(0, entry)
    return alone


def _as_uuid(value: UUID | str) -> UUID | None:
    if isinstance(value, UUID):
        return value
    try:
        return UUID(value)
    except (ValueError, AttributeError, TypeError):
        return None


@contextmanager
def logged_if_away(window: WindowCopy) -> Iterator[None]:
    """Do the block, which changes the copy; a cache that is away is logged."""
    try:
        yield
    except RedisError as error:
        logger.warning("window %s was not appended to: %s", window.key, error)
