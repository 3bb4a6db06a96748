"""Records of the archive, and the checks of new ones.

Roles, ids and texts have the same rules as in a tenant's memory.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from memory.arguments import id_argument, role_argument, text_argument
from memory.exceptions import InvalidArgument

MESSAGE_KEYS = ("role", "content", "id", "timestamp", "embedding_id")


@dataclass(frozen=True)
class Conversation:
    """A row of `conversations`."""

    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    metadata: dict[str, Any]


@dataclass(frozen=True)
class Message:
    """A row of `messages`. `embedding_id` is the id of its vector, if it has one."""

    id: str
    conversation_id: str
    role: str
    content: str
    timestamp: datetime
    embedding_id: str | None = None


@dataclass(frozen=True)
class StoredVector:
    """A vector in single precision, as it is stored, and the model that made it."""

    id: str
    vector: tuple[float, ...]
    model_version: str
    message_id: str | None = None


@dataclass(frozen=True)
class VectorHit:
    """A vector that a search found, with its cosine similarity from -1 to 1.

    `message_id` is the message of the vector, if it is known, and `content` its text, if it is in
    the file.
    """

    id: str
    similarity: float
    model_version: str
    message_id: str | None = None
    content: str | None = None


@dataclass(frozen=True)
class SearchHit:
    """A message that a search found; cosine similarity from -1 to 1."""

    message: Message
    similarity: float


@dataclass(frozen=True)
class FactHit:
    """A fact that a search found; cosine similarity from -1 to 1."""

    content: str
    similarity: float
    memory_id: str
    user_id: str | None
    agent_id: str | None
    metadata: dict[str, Any]


def new_id() -> str:
    """Return a globally unique id, so that archives can be joined."""
    return str(uuid4())


def now() -> datetime:
    return datetime.now(UTC)


def new_message(
    conversation_id: str,
    role: str,
    content: str,
    *,
    id: str | None = None,
    timestamp: datetime | None = None,
    embedding_id: str | None = None,
) -> Message:
    """Return a new message. Its id and time are generated if they are not given.

    Raises:
        InvalidArgument: a value is invalid for a message.
    """
    return Message(
        id=new_id() if id is None else id_argument("id", id),
        conversation_id=id_argument("conversation_id", conversation_id),
        role=role_argument(role),
        content=text_argument("content", content),
        timestamp=now() if timestamp is None else time_argument("timestamp", timestamp),
        embedding_id=None if embedding_id is None else id_argument("embedding_id", embedding_id),
    )


def new_messages(conversation_id: str, messages: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Return new messages from mappings with the arguments of `new_message`.

    Raises:
        InvalidArgument: names the invalid message and the reason.
    """
    records = []
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping) or not {"role", "content"} <= message.keys():
            raise InvalidArgument(f"messages[{number}]={str(message)[:80]} lacks role or content")
        if unknown := message.keys() - set(MESSAGE_KEYS):
            raise InvalidArgument(
                f"messages[{number}]: {min(unknown)!r} is not one of {', '.join(MESSAGE_KEYS)}"
            )
        try:
            records.append(new_message(conversation_id, **message))
        except InvalidArgument as error:
            raise InvalidArgument(f"messages[{number}]: {error}") from None
    return records


def time_argument(name: str, value: datetime) -> datetime:
    """Return the time in UTC; the datetime must have a time zone."""
    if not isinstance(value, datetime):
        raise InvalidArgument(f"{name}={value!r} is not a datetime")
    if value.utcoffset() is None:
        raise InvalidArgument(f"{name}={value!r} has no time zone: give it one, such as UTC")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidArgument(f"{name}={value!r} lies outside the years 1 to 9999 in UTC") from None


def time_text(value: datetime) -> str:
    """Return the time as stored: UTC, text of constant length that sorts like the times."""
    return value.isoformat(timespec="microseconds")


def metadata_text(metadata: Mapping[str, Any]) -> str:
    """Return the metadata as stored: a JSON object that is equal when it is read back."""
    try:
        text = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)
        is_equal = json.loads(text) == dict(metadata)
    except (TypeError, ValueError, RecursionError):
        is_equal = False
    if not is_equal:
        raise InvalidArgument(
            f"metadata={str(metadata)[:80]} is not a JSON object: use JSON's types, with text as"
            " keys"
        )
    return text_argument("metadata", text)
