"""The turns of a window: those of a conversation in the transcript, and their list in the cache.

The list is a copy of the transcript, and its readers compare it with the transcript. Each change of
it is one atomic round trip. A writer that has read the transcript replaces the list only if the
list has not changed meanwhile.
"""

import hashlib
import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self, cast
from uuid import UUID

from django.db.models import Exists, Max, OuterRef, Q
from django_redis import get_redis_connection
from redis import Redis
from redis.exceptions import ResponseError

from memory.arguments import ROLES
from memory.conf import HISTORY_CHANNELS, IMPORT_CHANNEL, STORED_CHANNEL
from memory.models import Message, RecallExclusion, WindowClear
from tenants.context import fetch_all, fetch_row, required_tenant_id
from tenants.redis_keys import agent_and_user, user_windows_pattern

logger = logging.getLogger(__name__)

_NEVER: Final = datetime.min.replace(tzinfo=UTC)
# Both queries are part of every reply, and take four times as long by the ORM.
_POSITION = """
WITH cleared AS MATERIALIZED (
    SELECT coalesce(max(last_number), 0) AS number, coalesce(max(created_at), '-infinity') AS at
    FROM (
        SELECT last_number, created_at FROM memory_windowclear
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND user_id = %(user)s
        ORDER BY id DESC LIMIT 1
    ) AS last
)
SELECT turn.number <= cleared.number OR turn.created_at < cleared.at, (
    SELECT before.id FROM memory_message AS before
    WHERE before.tenant_id = %(tenant)s AND before.agent_id = %(agent)s
      AND before.user_id = %(user)s
      AND (before.created_at, before.number) < (turn.created_at, turn.number)
      AND before.number > cleared.number AND before.created_at >= cleared.at
      AND (before.role = 'assistant' OR before.channel = ANY(%(history)s))
      AND before.channel <> %(stored)s
      AND NOT EXISTS (
        SELECT FROM memory_recallexclusion WHERE message_id = before.id AND start IS NULL
      )
    ORDER BY before.created_at DESC, before.number DESC LIMIT 1
)
FROM memory_message AS turn, cleared
WHERE turn.id = %(message)s
  AND turn.tenant_id = %(tenant)s AND turn.agent_id = %(agent)s AND turn.user_id = %(user)s
  AND (turn.role = 'assistant' OR turn.channel = ANY(%(history)s))
"""
# A question has the time of its reply: it is cleared together with the reply.
_COUNT_CURRENT = """
SELECT clear.id, clear.created_at, (
    SELECT count(*) FROM memory_message AS turn
    LEFT JOIN memory_message AS reply
      ON reply.in_reply_to_id = turn.id AND reply.channel <> %(import)s
    WHERE turn.id = ANY(%(messages)s::uuid[])
      AND NOT EXISTS (
        SELECT FROM memory_recallexclusion WHERE message_id = turn.id AND start IS NULL
      )
      AND turn.tenant_id = %(tenant)s AND turn.agent_id = %(agent)s AND turn.user_id = %(user)s
      AND (clear.id IS NULL OR (
        coalesce(reply.number, turn.number) > clear.last_number
        AND coalesce(reply.created_at, turn.created_at) >= clear.created_at
      ))
)
FROM (VALUES (1)) AS always LEFT JOIN (
    SELECT id, last_number, created_at FROM memory_windowclear
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND user_id = %(user)s
    ORDER BY id DESC LIMIT 1
) AS clear ON true
"""

_TURN: Final = ("id", "role", "content", "name", "created_at")


@dataclass(frozen=True)
class Turn:
    """A turn of the window. Without a message_id it was appended without a message."""

    role: str
    content: str
    message_id: str = ""
    name: str = ""
    at: str = ""
    clear: str = ""
    """Of a turn without a message: the token of the last clear before it, see `Clear`."""

    @classmethod
    def of(cls, message: Message) -> Self:
        """Return the turn of a message of the transcript."""
        return cls.of_values(*(getattr(message, name) for name in _TURN))

    @classmethod
    def of_values(
        cls, message_id: UUID, role: str, content: str, name: str, created_at: datetime
    ) -> Self:
        """Return the turn of a message of the transcript, from the values of the columns of
        `_TURN`.
        """
        return cls(role, content, str(message_id), name, created_at.isoformat())

    def as_dict(self) -> dict[str, Any]:
        """Return role and content, and the other fields that are set."""
        turn = {"role": self.role, "content": self.content}
        for extra in ("message_id", "name", "at"):
            if value := getattr(self, extra):
                turn[extra] = value
        return turn

    def encode(self) -> str:
        """Return the entry of the list.

        The id comes first, where the Lua script reads it.
        """
        turn = self.as_dict()
        first = {"message_id": turn.pop("message_id")} if self.message_id else {}
        last = {"clear": self.clear} if self.clear else {}
        return json.dumps({**first, **turn, **last}, separators=(",", ":"))


def decode(entry: bytes) -> dict[str, Any] | None:
    """Return the turn of an entry of the list; None for an entry that is no turn."""
    try:
        turn = json.loads(entry)
    except (ValueError, RecursionError):
        return None
    if not isinstance(turn, Mapping):
        return None
    role, content = turn.get("role"), turn.get("content")
    if role not in ROLES or not isinstance(content, str):
        return None
    decoded = {"role": role, "content": content, **turn}
    try:
        UUID(decoded.get("message_id", ""))
    except (ValueError, AttributeError, TypeError):
        decoded.pop("message_id", None)
    return decoded


@dataclass(frozen=True)
class TurnPosition:
    """The position of a turn in its conversation."""

    is_cleared: bool
    previous_id: UUID | None
    """The message that ends the turn before it."""


@dataclass(frozen=True)
class Clear:
    """The last explicit clear of a conversation; the defaults mean that it was never cleared."""

    last_number: int = 0
    cleared_at: datetime = _NEVER
    token: str = ""
    """Identifies this clear by id and time: a restored database gives the same ids again."""

    @classmethod
    def of(cls, clear: WindowClear) -> Self:
        """Return the clear of a row."""
        return cls(clear.last_number, clear.created_at, _token(clear.pk, clear.created_at))


@dataclass(frozen=True)
class Conversation:
    """An agent's conversation with a user, across all threads and channels, in one tenant."""

    tenant_id: UUID
    agent_id: UUID
    user_id: str

    def last_clear(self) -> Clear:
        """Return the last explicit clear."""
        last = WindowClear.objects.of(**self._scope()).order_by("-id").first()
        return Clear() if last is None else Clear.of(last)

    def recent_turns(self, limit: int, *, after: Clear) -> list[Turn]:
        """Return the last turns of the window, oldest first, without excluded messages.

        Answered messages with their replies, in the order of the replies; messages that a person
        sent as the agent; and imported turns. A turn is cleared if it was sent before the last
        clear, whenever it was imported, and if it was in the transcript then.
        """
        whole = RecallExclusion.objects.filter(start=None)
        # The newest messages that end a turn, each with its question.
        ends = (
            Message.objects.of(**self._scope())
            .window_turns(after_number=after.last_number)
            .filter(created_at__gte=after.cleared_at)
            .annotate(
                shows=~Exists(whole.filter(message_id=OuterRef("pk"))),
                shows_question=~Q(channel=IMPORT_CHANNEL)
                & Q(in_reply_to__isnull=False)
                & ~Exists(whole.filter(message_id=OuterRef("in_reply_to_id"))),
            )
            .filter(Q(shows=True) | Q(shows_question=True))
            .values_list("shows", "shows_question", *_TURN, *(f"in_reply_to__{n}" for n in _TURN))
        )
        turns: list[Turn] = []
        for shows, shows_question, *values in reversed([*ends[:limit]]):
            if shows_question:
                turns.append(Turn.of_values(*values[len(_TURN) :]))
            if shows:
                turns.append(Turn.of_values(*values[: len(_TURN)]))
        return turns[-limit:]

    def count_current(self, message_ids: Collection[str]) -> tuple[int, str]:
        """Return how many of the messages are in the transcript, not cleared and not excluded, and
        the token of the last clear.
        """
        values = self._values(messages=list(message_ids))
        ((id, created_at, count),) = fetch_all(_COUNT_CURRENT, values)
        return count, "" if id is None else _token(id, created_at)

    def position_of(self, message_id: str) -> TurnPosition | None:
        """Return the position of a message that ends a turn of this conversation; None for
        others.
        """
        row = fetch_row(_POSITION, self._values(message=message_id))
        return None if row is None else TurnPosition(*row)

    def clear(self) -> None:
        """Record that all turns up to now are cleared."""
        messages = Message.objects.of(self.tenant_id, self.agent_id, self.user_id)
        last = messages.aggregate(last=Max("number"))["last"] or 0
        WindowClear.objects.create(agent_id=self.agent_id, user_id=self.user_id, last_number=last)

    def _scope(self) -> dict[str, Any]:
        return {"tenant_id": self.tenant_id, "agent_id": self.agent_id, "user_id": self.user_id}

    def _values(self, **more: object) -> dict[str, object]:
        return {
            "tenant": self.tenant_id,
            "agent": self.agent_id,
            "user": self.user_id,
            "import": IMPORT_CHANNEL,
            "history": [*HISTORY_CHANNELS],
            "stored": STORED_CHANNEL,
            **more,
        }


def _token(clear_id: int, created_at: datetime) -> str:
    return f"{clear_id} {created_at.isoformat()}"


# --- The list in the cache ------------------------------------------------------------------------

# How often a writer reads list and transcript again after a concurrent change of the list.
MAX_ATTEMPTS: Final = 5
# A page of the list of windows ends after this many of them, or this many scans of keys.
WINDOWS_PER_PAGE: Final = 50
MAX_SCANS: Final = 20
SCANNED_KEYS: Final = 500
# Returns 1 if the turns are in the window (now or already), 0 if it must be rebuilt first: it is
# missing, it is no list, or it lacks the turn before these (NO_PREVIOUS_TURN: there is none, but
# the window has other messages).
APPEND_SCRIPT = """
local window, before, kind = tonumber(ARGV[1]), ARGV[2], redis.call('TYPE', KEYS[1]).ok
local may_create = before == 'first' or ARGV[3] == '1'
if kind ~= 'list' and (kind ~= 'none' or not may_create) then return 0 end
local held = redis.call('LRANGE', KEYS[1], 0, -1)
local known, with_id = {}, 0
for _, entry in ipairs(held) do
  local id = string.match(entry, '^{"message_id":"([^"]+)"')
  if id then known[id] = true; with_id = with_id + 1 end
end
local fresh = {}
for i = 4, #ARGV, 2 do
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
redis.call('DEL', KEYS[1])
for i = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[i]) end
redis.call('LTRIM', KEYS[1], -window, -1)
return 1
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


def append(
    key: str, turns: Sequence[Turn], *, window: int, before: str = "", may_create: bool = False
) -> bool:
    """Append turns that are not in the window yet; return False if it must be rebuilt first.

    Args:
        key: of the window.
        turns: in their order.
        window: maximum number of turns in the window.
        before: id of the message that ended the turn before these, or NO_PREVIOUS_TURN. A window
            without it is incomplete: the cache was down or restored from an old snapshot. Or it is
            further ahead, and these turns have left it already.
        may_create: whether the list may be missing.
    """
    arguments = [part for turn in turns for part in (turn.message_id, turn.encode())]
    return bool(_run(APPEND_SCRIPT, key, window, before, int(may_create), *arguments))


def write(
    key: str, entries: Sequence[str | bytes], *, window: int, expected: Sequence[bytes]
) -> bool:
    """Replace the list by the last `window` entries; return False if another writer changed it.

    Args:
        expected: the list as `read` returned it, before the transcript was read.
    """
    digest = hashlib.sha1(b"\n".join(expected), usedforsecurity=False).hexdigest()
    return bool(_run(WRITE_SCRIPT, key, window, digest, *entries))


def delete(*keys: str) -> None:
    """Delete these windows: the next reader writes each from the transcript."""
    if keys:
        _client().delete(*keys)


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
    the cursor is 0.
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


class Window:
    """A window: a list in the cache that is a copy of turns of the transcript."""

    key: str

    def transcript(self, size: int) -> tuple[list[Turn], str]:
        """Return the last turns of the transcript, and the token of the last clear."""
        raise NotImplementedError

    def count_current(self, message_ids: Collection[str]) -> tuple[int, str]:
        """Return how many of the messages the window may have, and the last clear's token."""
        raise NotImplementedError

    def read(self, size: int) -> list[dict[str, Any]]:
        """Return the turns of the copy. It is written again first if it is not current."""
        turns = decode_all(read(self.key))
        ids = {turn["message_id"] for turn in turns if "message_id" in turn}
        if turns:
            count, clear = self.count_current(ids)
            current = [_without_clear(turn) for turn in turns if is_current(turn, clear)]
            if current and count == len(ids):
                return current
        for _ in range(MAX_ATTEMPTS):
            if (rebuilt := self.rebuild(size)) is not None:
                return rebuilt
        self.give_up()
        return [turn.as_dict() for turn in self.transcript(size)[0]]

    def append(self, turns: Sequence[Turn], size: int, before: str = "") -> None:
        """Append turns as `append` does, and rebuild the window if it lacks earlier ones."""
        for attempt in range(MAX_ATTEMPTS):
            if append(self.key, turns, window=size, before=before, may_create=attempt > 0):
                return
            self.rebuild(size)
        self.give_up()

    def rebuild(self, size: int) -> list[dict[str, Any]] | None:
        """Replace the copy by the transcript, and by the turns without a message after it.

        Returns:
            The turns; None if another writer has changed the list, or a turn was cleared or erased
            since the transcript was read.
        """
        stored = read(self.key)
        transcript, clear = self.transcript(size)
        added = _appended_without_message(stored, clear)
        entries: list[str | bytes] = [*(turn.encode() for turn in transcript), *added]
        if not write(self.key, entries, window=size, expected=stored):
            return None
        ids = {turn.message_id for turn in transcript}
        if ids and self.count_current(ids)[0] < len(ids):
            delete(self.key)
            return None
        further = map(_without_clear, decode_all(added))
        return [*(turn.as_dict() for turn in transcript), *further][-size:]

    def give_up(self) -> None:
        """Delete a copy that other writers keep changing: the next reader writes it."""
        logger.warning(
            "a window was changed %s times while it was written: it is removed, and rebuilt by"
            " its next reader",
            MAX_ATTEMPTS,
        )
        delete(self.key)


def decode_all(entries: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return the turns of entries, without entries that are no turns."""
    return [turn for turn in map(decode, entries) if turn is not None]


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
