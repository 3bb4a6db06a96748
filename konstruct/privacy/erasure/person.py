"""The person of an erasure, with all their ids. Rows are found by exact values, not by words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self
from uuid import UUID

from django.apps import apps
from django.db import models

from konstruct.orchestrator.identities.channel_identities import is_known, linked_ids
from konstruct.orchestrator.identities.erasure_requests import threads_of
from konstruct.privacy.erasure.person_matcher import PersonMatcher, rows_naming_person, unique_names
from memory.scopes import scope_number
from tenants.audit.models import ErasureRequest
from tenants.context import fetch_column
from tenants.personal_data import OnErasure, personal_tables

# The condition for a person's rows, in a table with agents and users.
OF_PERSON: Final = (
    "tenant_id = %(tenant)s AND user_id = ANY(%(users)s)"
    " AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s)"
)


def ids_sql() -> str:
    """Return a query for the ids of a person's rows, by which other tables refer to them: UUIDs."""
    uuids = {
        model._meta.db_table
        for model in apps.get_models()
        if isinstance(model._meta.pk, models.UUIDField)
    }
    return " UNION ALL ".join(
        f"SELECT {data.key}::text AS id FROM {table} WHERE {data.of_person}"
        for table, data in personal_tables().items()
        if (data.subject or data.named_in) and data.key and table in uuids
    )


IDS: Final = ids_sql()


def _agents_sql() -> str:
    """Return a query for the agents that have rows of a person."""
    return " UNION ".join(
        f"SELECT {data.agent} FROM {table} WHERE {data.of_person} AND {data.agent} IS NOT NULL"
        for table, data in personal_tables().items()
        if data.subject and data.agent and data.on_erasure is OnErasure.DELETE
    )


@dataclass(frozen=True)
class Person:
    """A user of all agents, or of one, with all their ids and threads."""

    tenant_id: UUID
    user_ids: tuple[str, ...]
    """The id in the request is the first."""
    agent_id: UUID | None
    agents: tuple[UUID, ...] = ()
    threads: tuple[str, ...] = ()
    """Threads with messages of the person only, or with a session of the person."""
    sessions: tuple[str, ...] = ()
    """Threads with a session of the person."""
    shared_threads: int = 0
    """Number of their threads that also have messages of others."""
    sessions_left: int = 0
    """Number of their threads with a session that does not belong to them."""
    names: tuple[str, ...] | None = None
    """Names that no other person has, as words without case and accents; from the first round."""
    named: tuple[str, ...] = ()
    """Ids of rows of the team whose texts name the person."""

    @classmethod
    def of(cls, request: ErasureRequest, earlier: Mapping[str, Any]) -> Self:
        """Look up the person's ids, agents and threads, and add those of earlier rounds.

        Args:
            request: the request for the erasure.
            earlier: `fields` of the previous round; empty in the first round.
        """
        user_ids = [*linked_ids(request.user_id), *earlier.get("user_ids", ())]
        person = cls(request.tenant_id, tuple(dict.fromkeys(user_ids)), request.agent_id)
        threads = threads_of(person.user_ids, agent_id=request.agent_id, requested=request.threads)
        sessions = {
            thread.thread_id
            for thread in threads
            if thread.session_belongs_to_person(strict=request.by_bound_key)
        }
        own_threads = {thread.thread_id for thread in threads if thread.belongs_to_person}
        agents = set(fetch_column(_agents_sql(), person.parameters()))
        shared = sum(thread.has_messages and thread.has_messages_of_others for thread in threads)
        left = sum(thread.has_session and thread.thread_id not in sessions for thread in threads)
        names: Sequence[str] | None = earlier.get("names")
        if names is None and is_known(person.user_ids):
            names = unique_names(person.user_ids)
        if names is not None:
            person = replace(person, names=tuple(names))
        return replace(
            person,
            named=tuple(rows_naming_person(person.matcher, person.agent_id)),
            agents=tuple(sorted(agents.union(map(UUID, earlier.get("agents", ()))))),
            threads=tuple(sorted((own_threads | sessions).union(earlier.get("threads", ())))),
            sessions=tuple(sorted(sessions.union(earlier.get("sessions", ())))),
            shared_threads=max(shared, earlier.get("shared_threads", 0)),
            sessions_left=max(left, earlier.get("sessions_left", 0)),
        )

    @property
    def matcher(self) -> PersonMatcher:
        """Matches texts that name the person. An id without rows is ignored: it may be any word."""
        return PersonMatcher(() if self.names is None else self.user_ids, self.names or ())

    def fields(self) -> dict[str, Any]:
        """Return the argument of `of` for the next round, as JSON."""
        return {
            "user_ids": list(self.user_ids),
            "agents": [str(agent) for agent in self.agents],
            "threads": list(self.threads),
            "sessions": list(self.sessions),
            "shared_threads": self.shared_threads,
            "sessions_left": self.sessions_left,
            "names": self.names,
        }

    def parameters(self, **more: Any) -> dict[str, Any]:
        """Return the parameters of statements about this person."""
        return {
            "tenant": self.tenant_id,
            "users": list(self.user_ids),
            "agent": self.agent_id,
            "scopes": [
                scope_number(agent, user) for agent in self.agents for user in self.user_ids
            ],
            "threads": list(self.threads),
            "sessions": list(self.sessions),
            "named": list(self.named),
            **more,
        }
