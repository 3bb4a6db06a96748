"""An agent's conversation with a user, and its turns in the short-term window."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self
from uuid import UUID

from django.db.models import Max

from memory.arguments import ROLES
from memory.conf import HISTORY_CHANNELS, IMPORT_CHANNEL, STORED_CHANNEL
from memory.models import Message, WindowClear
from tenants.context import fetch_all, fetch_row

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
        """Return the last turns of the window, oldest first.

        Answered messages with their replies, in the order of the replies; messages that a person
        sent as the agent; and imported turns. A turn is cleared if it was sent before the last
        clear, whenever it was imported, and if it was in the transcript then.
        """
        # The newest messages that end a turn, each with its question.
        ends = (
            Message.objects.of(**self._scope())
            .window_turns(after_number=after.last_number)
            .filter(created_at__gte=after.cleared_at)
            .values_list("channel", *_TURN, *(f"in_reply_to__{name}" for name in _TURN))[:limit]
        )
        turns: list[Turn] = []
        for channel, *values in reversed([*ends]):
            turn, question = values[: len(_TURN)], values[len(_TURN) :]
            if question[0] is not None and channel != IMPORT_CHANNEL:
                turns.append(Turn.of_values(*question))
            turns.append(Turn.of_values(*turn))
        return turns[-limit:]

    def count_current(self, message_ids: Collection[str]) -> tuple[int, str]:
        """Return how many of the messages are in the transcript and not cleared, and the token of
        the last clear.
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
