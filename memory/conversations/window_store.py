"""Windows: the last turns of a conversation or of a thread, and their list in the cache.

The window of a thread has the turns of all its speakers and agents. It is for channels whose
threads are shared by all their participants, such as Slack's, and does not show turns that a user's
cleared window covers.

The list is a copy of the transcript, and its readers compare it with the transcript. Each change of
it is one atomic round trip. A list that is not current is deleted, and written from the transcript,
which is read again afterwards: if it has changed meanwhile, the next reader writes the list.
"""

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Self, cast
from uuid import UUID

from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django_redis import get_redis_connection
from redis import Redis, exceptions

from memory.arguments import ROLES, count_argument, id_argument
from memory.conf import HISTORY_CHANNELS, IMPORT_CHANNEL, STORED_CHANNEL, WINDOW
from memory.models import Message, RecallExclusion, WindowClear
from tenants import redis_keys
from tenants.context import fetch_row, fetch_value, required_tenant_id, tenant_scope

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
SELECT count(*) FROM memory_message AS turn
LEFT JOIN memory_message AS reply
  ON reply.in_reply_to_id = turn.id AND reply.channel <> %(import)s
LEFT JOIN (
    SELECT last_number, created_at FROM memory_windowclear
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND user_id = %(user)s
    ORDER BY id DESC LIMIT 1
) AS clear ON true
WHERE turn.id = ANY(%(messages)s::uuid[])
  AND NOT EXISTS (
    SELECT FROM memory_recallexclusion WHERE message_id = turn.id AND start IS NULL
  )
  AND turn.tenant_id = %(tenant)s AND turn.agent_id = %(agent)s AND turn.user_id = %(user)s
  AND (clear.last_number IS NULL OR (
    coalesce(reply.number, turn.number) > clear.last_number
    AND coalesce(reply.created_at, turn.created_at) >= clear.created_at
  ))
"""

Position = tuple[bool, str]
_TURN: Final = ("id", "role", "content", "name", "created_at")


@dataclass(frozen=True)
class Turn:
    """A turn of the window. Without a message_id it was appended without a message."""

    role: str
    content: str
    message_id: str = ""
    name: str = ""
    at: str = ""

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
        return json.dumps({**first, **turn}, separators=(",", ":"))


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


class Conversation(NamedTuple):
    """An agent's conversation with a user, across all threads and channels, in one tenant."""

    tenant_id: UUID
    agent_id: UUID
    user_id: str

    def recent_turns(self, limit: int) -> list[Turn]:
        """Return the last turns of the window, oldest first, without excluded messages.

        Answered messages with their replies, in the order of the replies; messages that a person
        sent as the agent; and imported turns. A turn is cleared if it was sent before the last
        clear, whenever it was imported, and if it was in the transcript then.
        """
        clear = WindowClear.objects.of(*self).order_by("-id").first()
        whole = RecallExclusion.objects.filter(start=None)
        # The newest messages that end a turn, each with its question.
        ends = (
            Message.objects.of(*self)
            .window_turns(after_number=clear.last_number if clear else 0)
            .filter(created_at__gte=clear.created_at if clear else _NEVER)
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

    def count_current(self, message_ids: Collection[str]) -> int:
        """Return how many of the messages are in the transcript, not cleared and not excluded."""
        values = self._values(messages=list(message_ids))
        return int(fetch_value(_COUNT_CURRENT, values))

    def position_of(self, message_id: str) -> Position:
        """Return whether a turn is cleared, and the id of the message that ends the turn before it.

        The id is NO_PREVIOUS_TURN for the first turn, and "" for a message that ends no turn of
        this conversation.
        """
        row = fetch_row(_POSITION, self._values(message=message_id))
        return (False, "") if row is None else (row[0], str(row[1] or NO_PREVIOUS_TURN))

    def clear(self) -> None:
        """Record that all turns up to now are cleared."""
        messages = Message.objects.of(*self)
        last = messages.aggregate(last=Max("number"))["last"] or 0
        WindowClear.objects.create(agent_id=self.agent_id, user_id=self.user_id, last_number=last)

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


# --- The list in the cache ------------------------------------------------------------------------

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
NO_PREVIOUS_TURN = "first"


def read(key: str) -> list[bytes]:
    """Return all entries, oldest first; none if the list is missing, or is no list."""
    try:
        entries = _client().lrange(key, 0, -1)
    except exceptions.ResponseError as error:
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
    script = _client().register_script(APPEND_SCRIPT)
    return bool(script(keys=[key], args=[window, before, int(may_create), *arguments]))


def delete(*keys: str) -> None:
    """Delete these windows: the next reader writes each from the transcript."""
    if keys:
        _client().delete(*keys)


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
            cursor, match=redis_keys.user_windows_pattern(required_tenant_id()), count=SCANNED_KEYS
        )
        found.update(key.decode() for key in cast(list[bytes], keys))
        if not cursor or len(found) >= WINDOWS_PER_PAGE:
            break
    windows = []
    for key in sorted(found):
        entries = read(key)
        last = decode(entries[-1]) if entries else None
        if last is not None:
            agent_id, user_id = redis_keys.agent_and_user(key)
            windows.append(ListedWindow(agent_id, user_id, len(entries), last))
    return windows, cursor


class Window:
    """A window: a list in the cache that is a copy of turns of the transcript."""

    key: str

    def transcript(self, size: int) -> Sequence[Turn]:
        """Return the last turns of the transcript, oldest first."""
        raise NotImplementedError

    def count_current(self, message_ids: Collection[str]) -> int:
        """Return how many of the messages the window may have."""
        raise NotImplementedError

    def read(self, size: int) -> list[dict[str, Any]]:
        """Return the turns of the copy. It is written again first if it is not current."""
        if turns := decode_all(read(self.key)):
            ids = {turn["message_id"] for turn in turns if "message_id" in turn}
            if not ids or self.count_current(ids) == len(ids):
                return turns
            delete(self.key)
        return self.rebuild(size)

    def append(self, turns: Sequence[Turn], size: int, before: str) -> None:
        """Append turns as `append` does, or rebuild the window if it lacks earlier ones."""
        if not append(self.key, turns, window=size, before=before):
            delete(self.key)
            self.rebuild(size)

    def rebuild(self, size: int) -> list[dict[str, Any]]:
        """Write the copy from the transcript, if there is none, and return its turns."""
        turns = self.transcript(size)
        if turns:
            append(self.key, turns, window=size, before=NO_PREVIOUS_TURN)
            if (newer := self.transcript(size)) != turns:
                # A turn was added, cleared or erased meanwhile.
                delete(self.key)
                turns = newer
        return [turn.as_dict() for turn in turns]


def decode_all(entries: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return the turns of entries, without entries that are no turns."""
    return [turn for turn in map(decode, entries) if turn is not None]


# --- The window of one thread --------------------------------------------------------------------

_shared_channels: set[str] = set()


def register_shared_channel(channel: str) -> None:
    """Register a channel in which all participants of a thread read all its messages."""
    _shared_channels.add(channel)


def shared_channels() -> frozenset[str]:
    """Return the channels with threads that all participants share."""
    return frozenset(_shared_channels)


@dataclass(frozen=True)
class ThreadTurn(Turn):
    """A turn of a thread, with its user and agent."""

    user_id: str = ""
    answered_by: str = ""

    @classmethod
    def of(cls, message: Message) -> Self:
        """Return the turn of a message of the transcript."""
        answered_by = str(message.answered_by_id or "")
        return replace(super().of(message), user_id=message.user_id, answered_by=answered_by)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return {**super().as_dict(), "user_id": self.user_id, "answered_by": self.answered_by}


@dataclass(frozen=True)
class ThreadWindow(Window):
    """The window of a thread of the current tenant."""

    key: str
    thread_id: str
    channel: str

    @classmethod
    def of(cls, thread_id: str, channel: str) -> Self:
        return cls(redis_keys.session_key(required_tenant_id(), thread_id), thread_id, channel)

    def transcript(self, size: int) -> list[ThreadTurn]:
        """Return the last turns of the thread, oldest first."""
        return [ThreadTurn.of(row) for row in reversed(self.turns()[:size])]

    def count_current(self, message_ids: Collection[str]) -> int:
        """Return how many of the messages are in the transcript, not cleared and not excluded."""
        return self.turns().filter(pk__in=message_ids).count()

    def turns(self) -> QuerySet[Message]:
        """Return the turns of the thread, newest first, without cleared and excluded ones."""
        clears = WindowClear.objects.filter(
            Q(last_number__gte=OuterRef("number")) | Q(created_at__gt=OuterRef("created_at")),
            agent_id=OuterRef("agent_id"),
            user_id=OuterRef("user_id"),
        )
        rows = Message.objects.not_excluded().filter(
            ~Exists(clears),
            tenant_id=required_tenant_id(),
            thread_id=id_argument("thread_id", self.thread_id),
            channel=self.channel,
        )
        return rows.order_by("-created_at", "-number")


def delete_all_threads(tenant_id: UUID | str) -> None:
    """Delete the windows of all threads of a tenant in the cache; readers write them again.

    For erasing, moving and retention, after they have changed the transcript.
    """
    with tenant_scope(tenant_id):
        client = get_redis_connection("default")
        keys = client.scan_iter(
            match=redis_keys.thread_windows_pattern(required_tenant_id()), count=1000
        )
        delete(*map(bytes.decode, keys))


def get_thread_turns(
    tenant_id: UUID | str, thread_id: str, channel: str, n: int = WINDOW
) -> list[dict[str, Any]]:
    """Return the last n turns of a thread, oldest first, with any state of their replies.

    One query compares the copy in the cache with the transcript. The window is rebuilt from the
    transcript if the cache has lost it, or if one of its turns is cleared or missing in the
    transcript. While the cache is down, the transcript is read.

    Returns:
        Dicts like those of `get_recent_messages`, with "user_id", and for a reply "answered_by".
    """
    n = count_argument("n", n, minimum=0)
    with tenant_scope(tenant_id):
        window = ThreadWindow.of(thread_id, channel)
        try:
            turns = window.read(WINDOW)
        except exceptions.RedisError as error:
            logger.warning("a thread is read from the transcript: %s", error)
            turns = [turn.as_dict() for turn in window.transcript(WINDOW)]
    # Two simultaneous turns may be appended in the other order.
    turns.sort(key=lambda turn: str(turn.get("at", "")))
    return turns[-n:] if n else []


def append_to_thread(tenant_id: UUID | str, message: Message) -> None:
    """Append a message of the transcript to its thread's window once, however often it is called.

    If the window lacks the turn before it, it is rebuilt. While the cache is down, a line is
    logged, and the next turn finds the gap.
    """
    with tenant_scope(tenant_id):
        window = ThreadWindow.of(message.thread_id, message.channel)
        before = window.turns().filter(
            Q(created_at__lt=message.created_at)
            | Q(created_at=message.created_at, number__lt=message.number)
        )
        previous = before.values_list("pk", flat=True).first()
        try:
            window.append([ThreadTurn.of(message)], WINDOW, str(previous or NO_PREVIOUS_TURN))
        except exceptions.RedisError as error:
            logger.warning("the thread of message %s was not appended to: %s", message.pk, error)


def delete_threads(tenant_id: UUID | str, thread_ids: Iterable[str]) -> None:
    """Delete the windows of these threads in the cache; readers write them again.

    Call it after the commit that changed the transcript.

    Raises:
        RedisError: the cache is down.
    """
    with tenant_scope(tenant_id):
        tenant = required_tenant_id()
        delete(*(redis_keys.session_key(tenant, thread_id) for thread_id in thread_ids))


def threads_of(agent_id: UUID, user_id: str) -> list[str]:
    """Return the shared threads in which a user has spoken with an agent of the current tenant."""
    rows = Message.objects.filter(agent_id=agent_id, user_id=user_id, channel__in=_shared_channels)
    return list(rows.values_list("thread_id", flat=True).order_by().distinct())
