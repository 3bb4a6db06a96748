"""A turn of the short-term window, and its form in the cache."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from memory.arguments import ROLES
from memory.models import Message


@dataclass(frozen=True)
class Turn:
    """What one side said; with the message's id, unless it was appended without a message."""

    role: str
    content: str
    message_id: str = ""
    name: str = ""
    at: str = ""
    clear: str = ""
    """Of a turn without a message: the last clear before it (`reading.Clear.token`)."""

    @classmethod
    def of(cls, message: Message) -> Self:
        """The turn of a message of the transcript."""
        return cls(
            role=message.role,
            content=message.content,
            message_id=str(message.id),
            name=message.name,
            at=message.created_at.isoformat(),
        )

    def as_dict(self) -> dict[str, Any]:
        """Role and content, and what else is known."""
        turn = {"role": self.role, "content": self.content}
        for extra in ("message_id", "name", "at"):
            if value := getattr(self, extra):
                turn[extra] = value
        return turn

    def encode(self) -> str:
        """The entry of the list. The id stands first, where the Lua script looks for it."""
        turn = self.as_dict()
        first = {"message_id": turn.pop("message_id")} if self.message_id else {}
        last = {"clear": self.clear} if self.clear else {}
        return json.dumps({**first, **turn, **last}, separators=(",", ":"))


def decode(entry: bytes) -> dict[str, Any] | None:
    """The turn in an entry of the list, or None for anything else that somebody put there."""
    try:
        turn = json.loads(entry)
    except (ValueError, RecursionError):
        return None
    if not isinstance(turn, Mapping):
        return None
    role, content = turn.get("role"), turn.get("content")
    if role not in ROLES or not isinstance(content, str):
        return None
    known = {"role": role, "content": content, **turn}
    try:
        UUID(known.get("message_id", ""))
    except (ValueError, AttributeError, TypeError):
        known.pop("message_id", None)
    return known
