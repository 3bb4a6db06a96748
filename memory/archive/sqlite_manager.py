"""Conversations and their messages in an archive.

Roles, ids and texts have the same rules as in a tenant's memory.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import apsw

from memory.archive.database import Database, DuplicateId, UnknownId
from memory.arguments import count_argument, id_argument, role_argument, text_argument, utc_argument
from memory.exceptions import InvalidArgument

MESSAGE_KEYS = ("role", "content", "id", "timestamp", "embedding_id")
_CONVERSATIONS = "SELECT id, title, created_at, updated_at, metadata FROM conversations"
_MESSAGES = "SELECT id, conversation_id, role, content, timestamp, embedding_id FROM messages"


@dataclass(frozen=True)
class Conversation:
    """A row of `conversations`."""

    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    metadata: dict[str, Any]

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> "Conversation":
        id, title, created_at, updated_at, metadata = row
        begun, changed = datetime.fromisoformat(created_at), datetime.fromisoformat(updated_at)
        return cls(id, title, begun, changed, json.loads(metadata))


@dataclass(frozen=True)
class Message:
    """A row of `messages`. `embedding_id` is the id of its vector, if it has one."""

    id: str
    conversation_id: str
    role: str
    content: str
    timestamp: datetime
    embedding_id: str | None = None

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> "Message":
        id, conversation_id, role, content, at, embedding_id = row
        return cls(id, conversation_id, role, content, datetime.fromisoformat(at), embedding_id)

    @classmethod
    def of(
        cls,
        conversation_id: str,
        role: str,
        content: str,
        *,
        id: str | None = None,
        timestamp: datetime | None = None,
        embedding_id: str | None = None,
    ) -> "Message":
        """Return a new message. Its id and time are generated if they are not given.

        Raises:
            InvalidArgument: a value is invalid for a message.
        """
        return cls(
            id=new_id(id),
            conversation_id=id_argument("conversation_id", conversation_id),
            role=role_argument(role),
            content=text_argument("content", content),
            timestamp=utc_argument("timestamp", timestamp or datetime.now(UTC)),
            embedding_id=embedding_id and id_argument("embedding_id", embedding_id),
        )


class SQLiteManager(Database):
    """An archive's conversations and messages, for any number of threads and processes.

    A process that was forked opens the file anew. With ":memory:" as path there is no file, and the
    data is gone when it is closed.
    """

    # --- Conversations ---------------------------------------------------------------------------

    def create_conversation(
        self,
        title: str = "",
        *,
        id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | None = None,
    ) -> str:
        """Create a conversation and return its id.

        Raises:
            DuplicateId: there is a conversation with this id.
        """
        id = new_id(id)
        created = _stored_time(utc_argument("created_at", created_at or datetime.now(UTC)))
        values = (id, text_argument("title", title), created, created, _stored(metadata or {}))
        with self.transaction() as connection:
            if connection.execute("SELECT 1 FROM conversations WHERE id = ?", (id,)).get:
                raise DuplicateId(f"there is a conversation with id={id!r} already: use another id")
            connection.execute("INSERT INTO conversations VALUES (?, ?, ?, ?, ?)", values)
        return id

    def get_conversation(self, id: str) -> Conversation:
        """Return the conversation with this id.

        Raises:
            UnknownId: there is no such conversation.
        """
        for row in self.rows(f"{_CONVERSATIONS} WHERE id = ?", (id_argument("id", id),)):
            return Conversation.of_row(row)
        raise _unknown_conversation(id)

    def list_conversations(
        self, *, limit: int | None = None, offset: int = 0
    ) -> list[Conversation]:
        """Return conversations, the one with the latest change first."""
        rows = self.rows(
            f"{_CONVERSATIONS} ORDER BY updated_at DESC, rowid DESC LIMIT ? OFFSET ?",
            _page(limit, offset),
        )
        return [*map(Conversation.of_row, rows)]

    def count_conversations(self) -> int:
        """Return the number of conversations."""
        return int(self.rows("SELECT count(*) FROM conversations")[0][0])

    def update_conversation(
        self, id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Conversation:
        """Replace the title, the metadata, or both, and return the conversation.

        Raises:
            UnknownId: there is no such conversation.
        """
        values = (
            None if title is None else text_argument("title", title),
            None if metadata is None else _stored(metadata),
            _stored_time(datetime.now(UTC)),
            id_argument("id", id),
        )
        with self.transaction() as connection:
            row = connection.execute(
                "UPDATE conversations SET title = coalesce(?, title),"
                " metadata = coalesce(?, metadata), updated_at = ? WHERE id = ?"
                " RETURNING id, title, created_at, updated_at, metadata",
                values,
            ).fetchone()
            if row is None:
                raise _unknown_conversation(id)
        return Conversation.of_row(row)

    def delete_conversation(self, id: str) -> None:
        """Delete a conversation with its messages and their vectors.

        Raises:
            UnknownId: there is no such conversation.
        """
        with self.transaction() as connection:
            connection.execute("DELETE FROM conversations WHERE id = ?", (id_argument("id", id),))
            if not connection.changes():
                raise _unknown_conversation(id)

    # --- Messages --------------------------------------------------------------------------------

    def add_message(
        self,
        conversation_id: str,
        role: str,
        content: str,
        *,
        id: str | None = None,
        timestamp: datetime | None = None,
        embedding_id: str | None = None,
    ) -> str:
        """Add a message (role: user or assistant) to a conversation and return its id.

        Raises:
            UnknownId: there is no such conversation.
            DuplicateId: a message has this id or this embedding_id.
        """
        message = Message.of(
            conversation_id, role, content, id=id, timestamp=timestamp, embedding_id=embedding_id
        )
        self.insert_messages(conversation_id, [message])
        return message.id

    def add_messages(
        self, conversation_id: str, messages: Iterable[Mapping[str, Any]]
    ) -> list[str]:
        """Add all of these messages, or none, and return their ids.

        Each is a mapping with "role" and "content", and optionally "id", "timestamp" and
        "embedding_id", as the arguments of `add_message`.

        Raises:
            InvalidArgument: names the invalid message and the reason.
        """
        records = []
        for number, message in enumerate(messages):
            if not isinstance(message, Mapping) or not {"role", "content"} <= message.keys():
                raise InvalidArgument(
                    f"messages[{number}]={str(message)[:80]} lacks role or content"
                )
            if unknown := message.keys() - set(MESSAGE_KEYS):
                raise InvalidArgument(
                    f"messages[{number}]: {min(unknown)!r} is not one of {', '.join(MESSAGE_KEYS)}"
                )
            try:
                records.append(Message.of(conversation_id, **message))
            except InvalidArgument as error:
                raise InvalidArgument(f"messages[{number}]: {error}") from None
        self.insert_messages(conversation_id, records)
        return [message.id for message in records]

    def insert_messages(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """Insert messages of one conversation that `Message.of` has made."""
        with self.transaction() as connection:
            connection.execute(
                "UPDATE conversations SET updated_at = ? WHERE id = ?",
                (_stored_time(datetime.now(UTC)), conversation_id),
            )
            if not connection.changes():
                raise _unknown_conversation(conversation_id)
            for m in messages:
                try:
                    connection.execute(
                        "INSERT INTO messages"
                        " (id, conversation_id, role, content, timestamp, embedding_id)"
                        " VALUES (?, ?, ?, ?, ?, ?)",
                        (
                            *(m.id, conversation_id, m.role, m.content),
                            *(_stored_time(m.timestamp), m.embedding_id),
                        ),
                    )
                except apsw.ConstraintError as error:
                    column = "embedding_id" if "embedding_id" in str(error) else "id"
                    raise DuplicateId(
                        f"there is a message with {column}={getattr(m, column)!r} already: use"
                        " another one"
                    ) from None

    def get_message(self, id: str) -> Message:
        """Return the message with this id.

        Raises:
            UnknownId: there is no such message.
        """
        for row in self.rows(f"{_MESSAGES} WHERE id = ?", (id_argument("id", id),)):
            return Message.of_row(row)
        raise _unknown_message(id)

    def list_messages(
        self,
        conversation_id: str,
        *,
        limit: int | None = None,
        offset: int = 0,
        newest_first: bool = False,
    ) -> list[Message]:
        """Return messages of a conversation in the order of their timestamps.

        Raises:
            UnknownId: there is no such conversation.
        """
        order = "DESC" if newest_first else "ASC"
        rows = self.rows(
            f"{_MESSAGES} WHERE conversation_id = ?"
            f" ORDER BY timestamp {order}, position {order} LIMIT ? OFFSET ?",
            (id_argument("conversation_id", conversation_id), *_page(limit, offset)),
        )
        if not rows:
            self.get_conversation(conversation_id)
        return [*map(Message.of_row, rows)]

    def count_messages(self, conversation_id: str | None = None) -> int:
        """Return the number of messages, in one conversation or in all.

        Raises:
            UnknownId: there is no such conversation.
        """
        if conversation_id is not None:
            self.get_conversation(conversation_id)
        statement = "SELECT count(*) FROM messages WHERE ?1 IS NULL OR conversation_id = ?1"
        return int(self.rows(statement, (conversation_id,))[0][0])

    def delete_message(self, id: str) -> None:
        """Delete a message and its vector.

        Raises:
            UnknownId: there is no such message.
        """
        with self.transaction() as connection:
            connection.execute("DELETE FROM messages WHERE id = ?", (id_argument("id", id),))
            if not connection.changes():
                raise _unknown_message(id)


def new_id(given: str | None = None) -> str:
    """Return the given id, or else a globally unique one, so that archives can be joined."""
    return str(uuid4()) if given is None else id_argument("id", given)


def _stored_time(value: datetime) -> str:
    """Return the time as stored: UTC, text of constant length that sorts like the times."""
    return value.isoformat(timespec="microseconds")


def _stored(metadata: Mapping[str, Any]) -> str:
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


def _page(limit: int | None, offset: int) -> tuple[int, int]:
    # SQLite's value for "no limit" is -1.
    return (
        -1 if limit is None else count_argument("limit", limit, minimum=0),
        count_argument("offset", offset, minimum=0),
    )


def _unknown_conversation(id: str) -> UnknownId:
    return UnknownId(f"there is no conversation with id={id!r}: see list_conversations()")


def _unknown_message(id: str) -> UnknownId:
    return UnknownId(f"there is no message with id={id!r}: see list_messages(conversation_id)")
