"""Threads and sessions of graphs that belong to a person.

A session belongs to the user that its metadata name. Without a user in the metadata it belongs to
the only user who has messages in the thread of the same name.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from tenants.context import fetch_all

_OF_PERSON = "user_id = ANY(%(users)s) AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s)"
_SPOKEN: Final = f"""
    SELECT thread_id, bool_or({_OF_PERSON}), bool_or(NOT ({_OF_PERSON})),
           min(created_at) FILTER (WHERE {_OF_PERSON})
    FROM memory_message
    WHERE thread_id IN (SELECT thread_id FROM memory_message WHERE {_OF_PERSON})
       OR thread_id = ANY(%(named)s)
    GROUP BY thread_id
"""  # noqa: S608  (our constants)
_BY_METADATA = (
    "metadata ->> 'user_id' = ANY(%(users)s)"
    " AND (%(agent)s::uuid IS NULL OR metadata ->> 'agent_id' = %(agent)s::text)"
)
# The first checkpoint of a session has no parent. A pruned session may lack it.
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
    asked_for: bool = False
    """The request for an erasure names the thread."""
    spoke: bool = False
    others_spoke: bool = False
    first_spoke_at: datetime | None = None
    has_session: bool = False
    session_names_them: bool = False
    session_names_others: bool = False
    session_began_at: datetime | None = None

    @property
    def is_theirs_alone(self) -> bool:
        """Whether all messages of the thread are the person's, and there are some."""
        return self.spoke and not self.others_spoke

    def session_is_theirs(self, *, strict: bool) -> bool:
        """Return whether the thread's session belongs to the person.

        Args:
            strict: whether the request is not trusted. Then neither the request alone makes a
                session the person's, nor a message that is younger than the session.
        """
        if self.session_names_others:
            return False
        if self.session_names_them:
            return True
        if self.others_spoke:
            return False
        if not self.spoke:
            return self.asked_for and not strict
        if not (strict and self.has_session):
            return True
        began, first = self.session_began_at, self.first_spoke_at
        return began is not None and first is not None and first <= began


def threads_of(
    user_ids: Sequence[str], *, agent_id: UUID | None = None, named: Iterable[str] = ()
) -> list[PersonThread]:
    """Return the threads with messages or sessions of the person, and the named threads."""
    asked_for = set(named)
    values = {"users": list(user_ids), "agent": agent_id, "named": sorted(asked_for)}
    spoken = {thread: rest for thread, *rest in fetch_all(_SPOKEN, values)}
    sessions = {
        thread: rest
        for thread, *rest in fetch_all(
            _SESSIONS, {**values, "threads": sorted(asked_for | spoken.keys())}
        )
    }
    found = []
    for thread in sorted(asked_for | spoken.keys() | sessions.keys()):
        spoke, others_spoke, first = spoken.get(thread, (False, False, None))
        names_them, names_others, began = sessions.get(thread, (False, False, None))
        found.append(
            PersonThread(
                thread,
                asked_for=thread in asked_for,
                spoke=spoke,
                others_spoke=others_spoke,
                first_spoke_at=first,
                has_session=thread in sessions,
                session_names_them=names_them,
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
