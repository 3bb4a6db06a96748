"""Threads and sessions of graphs that belong to a person.

A session belongs to the user in its metadata. Without one, it belongs to the user of the messages
in the thread with the same id, if all messages are of one user.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from tenants.context import fetch_all

_OF_PERSON = "user_id = ANY(%(users)s) AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s)"
_MESSAGES: Final = f"""
    SELECT thread_id, bool_or({_OF_PERSON}), bool_or(NOT ({_OF_PERSON})),
           min(created_at) FILTER (WHERE {_OF_PERSON})
    FROM memory_message
    WHERE thread_id IN (SELECT thread_id FROM memory_message WHERE {_OF_PERSON})
       OR thread_id = ANY(%(requested)s)
    GROUP BY thread_id
"""  # noqa: S608  (our constants)
_BY_METADATA = (
    "metadata ->> 'user_id' = ANY(%(users)s)"
    " AND (%(agent)s::uuid IS NULL OR metadata ->> 'agent_id' = %(agent)s::text)"
)
# The first checkpoint of a session has no parent. If it was pruned, the begin is NULL.
_SESSIONS: Final = f"""
    SELECT thread_id, coalesce(bool_or({_BY_METADATA}), false),
           coalesce(bool_or(metadata ->> 'user_id' IS NOT NULL AND NOT ({_BY_METADATA})), false),
           min(checkpoint ->> 'ts') FILTER (WHERE parent_checkpoint_id IS NULL)
    FROM checkpoints
    WHERE thread_id = ANY(%(threads)s)
       OR thread_id IN (SELECT thread_id FROM checkpoints WHERE {_BY_METADATA})
    GROUP BY thread_id
"""  # noqa: S608  (our constants)


@dataclass(frozen=True, slots=True)
class PersonThread:
    """A thread, and the relation of one person to it."""

    thread_id: str
    is_requested: bool = False
    """Whether the request for an erasure names the thread."""
    has_messages: bool = False
    """Whether the person has messages in the thread."""
    has_messages_of_others: bool = False
    first_message_at: datetime | None = None
    """Time of the first message of the person."""
    has_session: bool = False
    session_names_person: bool = False
    session_names_others: bool = False
    session_began_at: datetime | None = None

    @property
    def belongs_to_person(self) -> bool:
        """Whether the thread has messages, all of the person."""
        return self.has_messages and not self.has_messages_of_others

    def session_belongs_to_person(self, *, strict: bool) -> bool:
        """Return whether the thread's session belongs to the person.

        Args:
            strict: whether the request is not trusted. Then the session does not belong to the
                person only because the request names it, or because of a message that is younger
                than the session.
        """
        if self.session_names_others:
            return False
        if self.session_names_person:
            return True
        if self.has_messages_of_others:
            return False
        if not self.has_messages:
            return self.is_requested and not strict
        if not (strict and self.has_session):
            return True
        began, first = self.session_began_at, self.first_message_at
        return began is not None and first is not None and first <= began


def threads_of(
    user_ids: Sequence[str], *, agent_id: UUID | None = None, requested: Iterable[str] = ()
) -> list[PersonThread]:
    """Return the threads with messages or sessions of the person, and the requested threads."""
    requested = set(requested)
    values: dict[str, Any] = {
        "users": list(user_ids),
        "agent": agent_id,
        "requested": sorted(requested),
    }
    messages = {thread: row for thread, *row in fetch_all(_MESSAGES, values)}
    values["threads"] = sorted(requested | messages.keys())
    sessions = {thread: row for thread, *row in fetch_all(_SESSIONS, values)}
    found = []
    for thread in sorted(requested | messages.keys() | sessions.keys()):
        has_messages, has_messages_of_others, first = messages.get(thread, (False, False, None))
        names_person, names_others, began = sessions.get(thread, (False, False, None))
        found.append(
            PersonThread(
                thread,
                is_requested=thread in requested,
                has_messages=has_messages,
                has_messages_of_others=has_messages_of_others,
                first_message_at=first,
                has_session=thread in sessions,
                session_names_person=names_person,
                session_names_others=names_others,
                session_began_at=_moment(began),
            )
        )
    return found


def _moment(text: str | None) -> datetime | None:
    """Return the time of a checkpoint; None for a text that is no time."""
    with suppress(ValueError, TypeError):
        moment = datetime.fromisoformat(text or "")
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
