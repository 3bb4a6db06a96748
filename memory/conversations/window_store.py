"""The list of a window in the cache. Each change is one atomic round trip.

The list is a copy of the transcript, and its readers compare it with the transcript. A writer that
has read the transcript replaces the list only if the list has not changed meanwhile.
"""

import hashlib
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Final, Self, cast
from uuid import UUID, uuid4

from django_redis import get_redis_connection
from redis import Redis
from redis.exceptions import RedisError, ResponseError

from memory.arguments import id_argument
from memory.conf import WINDOW
from memory.conversations.conversation import Clear, Conversation, Turn, TurnPosition, decode
from memory.models import WindowClear
from tenants.context import known_tenant, required_tenant_id, tenant_scope
from tenants.exceptions import UnknownTenant
from tenants.redis_keys import agent_and_user, memory_short_key, user_windows_pattern

logger = logging.getLogger(__name__)


# How often a writer reads list and transcript again after a concurrent change of the list.
MAX_ATTEMPTS: Final = 5
# A page of the list of windows ends after this many of them, or this many scans of keys.
WINDOWS_PER_PAGE: Final = 50
MAX_SCANS: Final = 20
SCANNED_KEYS: Final = 500
# Returns 1 if the turns are in the window (now or already), 0 if it must be rebuilt first: it is
# missing, it is no list, it was invalidated (or cleared, by an earlier version), or it lacks the
# turn before these (NO_PREVIOUS_TURN: there is none, but the window has other messages).
APPEND_SCRIPT = """
local window, before = tonumber(ARGV[1]), ARGV[2]
if redis.call('TYPE', KEYS[1]).ok ~= 'list' then return 0 end
local held = redis.call('LRANGE', KEYS[1], 0, -1)
for _, mark in ipairs({'^{"forgotten":', '^{"cleared":'}) do
  if string.match(held[1], mark) then return 0 end
end
local known, with_id = {}, 0
for _, entry in ipairs(held) do
  local id = string.match(entry, '^{"message_id":"([^"]+)"')
  if id then known[id] = true; with_id = with_id + 1 end
end
local fresh = {}
for i = 3, #ARGV, 2 do
  if not known[ARGV[i]] then fresh[#fresh + 1] = ARGV[i + 1] end
end
if #fresh == 0 then return 1 end
if before == 'first' and with_id > 0 then return 0 end
if before ~= 'first' and before ~= '' and not known[before]
  and (with_id > 0 or #held < window) then return 0 end
redis.call('RPUSH', KEYS[1], unpack(fresh))
redis.call('LTRIM', KEYS[1], -window, -1)
return 1
"""
# Returns 1 if the window was written, 0 if the list is not the one that was read.
WRITE_SCRIPT = """
local window, kind = tonumber(ARGV[1]), redis.call('TYPE', KEYS[1]).ok
local held = {}
if kind == 'list' then held = redis.call('LRANGE', KEYS[1], 0, -1) end
if redis.sha1hex(table.concat(held, '\\n')) ~= ARGV[2] then return 0 end
if kind ~= 'none' then redis.call('DEL', KEYS[1]) end
for i = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[i]) end
redis.call('LTRIM', KEYS[1], -window, -1)
return 1
"""
# The entry is no turn, and no other list has it: readers rebuild the window, and a writer that read
# the list and the transcript before it does not overwrite it.
INVALIDATE_SCRIPT = """
redis.call('DEL', KEYS[1])
redis.call('RPUSH', KEYS[1], '{"forgotten":"' .. ARGV[1] .. '"}')
"""
NO_PREVIOUS_TURN = "first"


def read(key: str) -> list[bytes]:
    """Return all entries, oldest first; none if the list is missing, or is no list."""
    try:
        entries = _client().lrange(key, 0, -1)
    except ResponseError as error:
        if not str(error).startswith("WRONGTYPE"):
            raise
        return []
    return cast(list[bytes], entries)


def append(key: str, turns: Sequence[Turn], *, window: int, before: str = "") -> bool:
    """Append turns that are not in the window yet; return False if it must be rebuilt first.

    Args:
        before: id of the message that ended the turn before these, or NO_PREVIOUS_TURN. A window
            without it is incomplete: the cache was down or restored from an old snapshot. Or it is
            further ahead, and these turns have left it already.
    """
    arguments = [part for turn in turns for part in (turn.message_id, turn.encode())]
    return bool(_run(APPEND_SCRIPT, key, window, before, *arguments))


def write(
    key: str, entries: Sequence[str | bytes], *, window: int, expected: Sequence[bytes]
) -> bool:
    """Replace the list by the last `window` entries; return False if another writer changed it.

    Args:
        expected: the list as `read` returned it, before the transcript was read.
    """
    digest = hashlib.sha1(b"\n".join(expected), usedforsecurity=False).hexdigest()
    return bool(_run(WRITE_SCRIPT, key, window, digest, *entries))


def invalidate(key: str) -> None:
    """Invalidate the window: the next reader rebuilds it."""
    _run(INVALIDATE_SCRIPT, key, str(uuid4()))


def _run(script: str, key: str, *arguments: str | bytes | int) -> int:
    result: int = _client().register_script(script)(keys=[key], args=arguments)
    return result


def _client() -> Redis:
    return get_redis_connection("default")


@dataclass(frozen=True, slots=True)
class ListedWindow:
    """A window in a list: its number of entries, and the last turn."""

    agent_id: str
    user_id: str
    turns: int
    last: dict[str, Any]


def list_windows(cursor: int = 0) -> tuple[list[ListedWindow], int]:
    """Return windows of the current tenant that are in the cache, and the cursor of the next page.

    They come in no order, about WINDOWS_PER_PAGE at once. A call looks at a bounded number of keys,
    which are of all tenants, so that a page can be empty and have a next one. After the last page
    the cursor is 0. Windows that were only invalidated are left out.
    """
    client, found = _client(), set[str]()
    for _ in range(MAX_SCANS):
        cursor, keys = client.scan(
            cursor, match=user_windows_pattern(required_tenant_id()), count=SCANNED_KEYS
        )
        found.update(key.decode() for key in cast(list[bytes], keys))
        if not cursor or len(found) >= WINDOWS_PER_PAGE:
            break
    windows = []
    for key in sorted(found):
        entries = read(key)
        last = decode(entries[-1]) if entries else None
        if last is not None:
            agent_id, user_id = agent_and_user(key)
            windows.append(ListedWindow(agent_id, user_id, len(entries), last))
    return windows, cursor


@dataclass(frozen=True)
class WindowCopy:
    """One window: its key, and the conversation that it copies.

    Without a conversation if an id is no UUID: no transcript can have it, and the window exists in
    the cache only.
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

    @classmethod
    def to_write(cls, tenant_id: UUID | str, agent_id: UUID | str, user_id: str) -> Self:
        """Return a window of a tenant.

        Raises:
            InvalidTenantId: tenant_id is not a UUID.
            UnknownTenant: agent_id is not a UUID, and there is no such tenant.
        """
        window = cls.of(tenant_id, agent_id, user_id)
        if window.conversation is None:
            with known_tenant(tenant_id):
                WindowClear.objects.exists()
        return window

    def in_tenant(self) -> AbstractContextManager[object]:
        """Enter the tenant, so that code of one tenant cannot reach another's window."""
        if self.conversation is None:
            return nullcontext()
        return tenant_scope(self.conversation.tenant_id)

    def read(self, size: int) -> list[dict[str, Any]]:
        """Return the turns of the copy. It is written again first if it is not current."""
        stored = read(self.key)
        turns = [turn for turn in map(decode, stored) if turn is not None]
        ids = {turn["message_id"] for turn in turns if "message_id" in turn}
        if turns:
            count, clear = self.count_current(ids)
            current = [_without_clear(turn) for turn in turns if is_current(turn, clear)]
            if current and count == len(ids):
                return current
        for _ in range(MAX_ATTEMPTS):
            transcript, last_clear = self.transcript(size)
            appended = _appended_without_message(stored, last_clear.token)
            entries: list[str | bytes] = [turn.encode() for turn in transcript]
            entries += appended
            if write(self.key, entries, window=size, expected=stored):
                break
            stored = read(self.key)
        further = [_without_clear(turn) for turn in map(decode, appended) if turn is not None]
        return [*(turn.as_dict() for turn in transcript), *further][-size:]

    def write_transcript(
        self,
        size: int,
        *,
        more_turns: Sequence[Turn] = (),
        changed: Sequence[Turn] = (),
        expected: Sequence[bytes] | None = None,
    ) -> bool:
        """Replace the copy by the transcript and more turns; return False if it has changed.

        Args:
            more_turns: turns that follow those of the transcript.
            changed: turns of the transcript that a wrapper of `append_message` has changed.
            expected: the entries of the copy when it was last read; by default they are read now.
        """
        expected = read(self.key) if expected is None else expected
        turns, _ = self.transcript(size)
        changed_by_id = {turn.message_id: turn for turn in changed}
        current = [changed_by_id.get(turn.message_id, turn) for turn in turns]
        entries = [turn.encode() for turn in (*current, *more_turns)]
        return write(self.key, entries, window=size, expected=expected)

    def rebuild(self) -> None:
        """Replace the copy by the transcript."""
        for _ in range(MAX_ATTEMPTS):
            if self.write_transcript(WINDOW):
                return
        self.invalidate()

    def invalidate(self) -> None:
        """Invalidate a copy that other writers keep changing: the next reader writes it."""
        logger.warning(
            "window %s was changed %s times while it was written: it is removed, and rebuilt by"
            " its next reader",
            self.key,
            MAX_ATTEMPTS,
        )
        invalidate(self.key)

    def transcript(self, size: int) -> tuple[list[Turn], Clear]:
        """Return the turns of the window from the transcript, and the last clear."""
        if self.conversation is not None:
            with suppress(UnknownTenant), known_tenant(self.conversation.tenant_id):
                clear = self.conversation.last_clear()
                return self.conversation.recent_turns(size, after=clear), clear
        return [], Clear()

    def clear_token(self) -> str:
        """Return the token of the last clear.

        Raises:
            UnknownTenant: no such tenant.
        """
        if self.conversation is None:
            return ""
        with known_tenant(self.conversation.tenant_id):
            return self.conversation.count_current([])[1]

    def count_current(self, message_ids: Collection[str]) -> tuple[int, str]:
        """Return how many of the messages the window may have, and the last clear's token.

        All of them if there is no conversation.
        """
        if self.conversation is not None:
            with suppress(UnknownTenant), known_tenant(self.conversation.tenant_id):
                return self.conversation.count_current(message_ids)
        return len(message_ids), ""

    def position_of(self, turn: Turn) -> TurnPosition | None:
        """Return the position of the turn in the transcript; None if it is not there."""
        if self.conversation is None or _as_uuid(turn.message_id) is None:
            return None
        with known_tenant(self.conversation.tenant_id):
            return self.conversation.position_of(turn.message_id)


def is_current(turn: Mapping[str, Any], clear: str) -> bool:
    """Return whether a turn without a message was appended after the last clear; True for
    others.
    """
    return "message_id" in turn or turn.get("clear", "") == clear


def _without_clear(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in turn.items() if name != "clear"}


def _appended_without_message(entries: Sequence[bytes], clear: str) -> list[bytes]:
    """Return the entries after the last message that have no message, since the last clear."""
    appended: list[bytes] = []
    for entry in reversed(entries):
        turn = decode(entry)
        if turn is not None and "message_id" in turn:
            break
        if turn is not None and is_current(turn, clear):
            appended.insert(0, entry)
    return appended


def _as_uuid(value: UUID | str) -> UUID | None:
    try:
        return UUID(str(value))
    except ValueError:
        return None


@contextmanager
def log_cache_outage(window: WindowCopy) -> Iterator[None]:
    """Run the block, which changes the copy. Log a line instead of an error of the cache."""
    try:
        yield
    except RedisError as error:
        logger.warning("window %s was not appended to: %s", window.key, error)
