"""Conversations and their messages in an archive."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import apsw

from memory.archive import schema
from memory.archive.database import Database
from memory.archive.exceptions import DuplicateId, UnknownId
from memory.archive.records import (
    Conversation,
    Message,
    metadata_text,
    new_id,
    new_message,
    new_messages,
    now,
    time_argument,
    time_text,
)
from memory.arguments import count_argument, id_argument, text_argument

_CONVERSATIONS = "SELECT id, title, created_at, updated_at, metadata FROM conversations"
_MESSAGES = "SELECT id, conversation_id, role, content, timestamp, embedding_id FROM messages"

_OF_EMBEDDINGS = " WHERE embedding_id IN (SELECT value FROM json_each(?))"


class SQLiteManager(Database):
    """An archive's conversations and messages, for any number of threads and processes.

    A process that was forked opens the file anew. With ":memory:" as path there is no file, and the
    data is gone when it is closed.

    Args:
        path: the file. One that does not exist is created; one of an earlier version is migrated.

    Raises:
        InvalidArgument: `path` cannot be a path.
        ArchiveUnavailable: there is no such directory, or the file cannot be opened or written.
        NotAnArchive, ArchiveDamaged, NewerArchive: the file cannot be used; it is not changed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, schema.migrate)

    @property
    def schema_version(self) -> int:
        """The number of migrations that the file has."""
        return int(self.rows("PRAGMA user_version")[0][0])

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
        id = new_id() if id is None else id_argument("id", id)
        created = time_text(
            now() if created_at is None else time_argument("created_at", created_at)
        )
        values = (
            id,
            text_argument("title", title),
            created,
            created,
            metadata_text(metadata or {}),
        )
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
        rows = self.rows(f"{_CONVERSATIONS} WHERE id = ?", (id_argument("id", id),))
        if not rows:
            raise _unknown_conversation(id)
        return _conversation(rows[0])

    def list_conversations(
        self, *, limit: int | None = None, offset: int = 0
    ) -> list[Conversation]:
        """Return conversations, the one with the latest change first."""
        rows = self.rows(
            f"{_CONVERSATIONS} ORDER BY updated_at DESC, rowid DESC LIMIT ? OFFSET ?",
            _page(limit, offset),
        )
        return [_conversation(row) for row in rows]

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
            None if metadata is None else metadata_text(metadata),
            time_text(now()),
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
        return _conversation(row)

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
        message = new_message(
            conversation_id,
            role,
            content,
            id=id,
            timestamp=timestamp,
            embedding_id=embedding_id,
        )
        self.insert_messages(conversation_id, [message])
        return message.id

    def add_messages(
        self, conversation_id: str, messages: Iterable[Mapping[str, Any]]
    ) -> list[str]:
        """Add all of these messages, or none, and return their ids.

        Each is a mapping with "role" and "content", and optionally "id", "timestamp" and
        "embedding_id", as the arguments of `add_message`.
        """
        records = new_messages(conversation_id, messages)
        self.insert_messages(conversation_id, records)
        return [message.id for message in records]

    def insert_messages(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """Insert messages of one conversation that `memory.archive.records` has made."""
        with self.transaction() as connection:
            connection.execute(
                "UPDATE conversations SET updated_at = ? WHERE id = ?",
                (time_text(now()), id_argument("conversation_id", conversation_id)),
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
                            m.id,
                            conversation_id,
                            m.role,
                            m.content,
                            time_text(m.timestamp),
                            m.embedding_id,
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
        rows = self.rows(f"{_MESSAGES} WHERE id = ?", (id_argument("id", id),))
        if not rows:
            raise _unknown_message(id)
        return _message(rows[0])

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
        return [_message(row) for row in rows]

    def messages_of_embeddings(self, embedding_ids: Sequence[str]) -> dict[str, Message]:
        """Return the messages that have these vectors, by the id of the vector."""
        rows = self.rows(_MESSAGES + _OF_EMBEDDINGS, (json.dumps(embedding_ids),))
        return {row[5]: _message(row) for row in rows}

    def count_messages(self, conversation_id: str | None = None) -> int:
        """Return the number of messages, in one conversation or in all.

        Raises:
            UnknownId: there is no such conversation.
        """
        if conversation_id is None:
            return int(self.rows("SELECT count(*) FROM messages")[0][0])
        count = self.rows(
            "SELECT count(*) FROM messages WHERE conversation_id = ?",
            (id_argument("conversation_id", conversation_id),),
        )[0][0]
        if not count:
            self.get_conversation(conversation_id)
        return int(count)

    def delete_message(self, id: str) -> None:
        """Delete a message and its vector.

        Raises:
            UnknownId: there is no such message.
        """
        with self.transaction() as connection:
            connection.execute("DELETE FROM messages WHERE id = ?", (id_argument("id", id),))
            if not connection.changes():
                raise _unknown_message(id)


def _conversation(row: tuple[Any, ...]) -> Conversation:
    id, title, created_at, updated_at, metadata = row
    return Conversation(
        id=id,
        title=title,
        created_at=datetime.fromisoformat(created_at),
        updated_at=datetime.fromisoformat(updated_at),
        metadata=json.loads(metadata),
    )


def _message(row: tuple[Any, ...]) -> Message:
    id, conversation_id, role, content, timestamp, embedding_id = row
    return Message(
        id=id,
        conversation_id=conversation_id,
        role=role,
        content=content,
        timestamp=datetime.fromisoformat(timestamp),
        embedding_id=embedding_id,
    )


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
