"""The person of an erasure, with all their ids. Rows are found by exact values."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self
from uuid import UUID

from django.apps import apps
from django.db import models

from konstruct.orchestrator.identities.channel_identities import is_known, linked_ids
from konstruct.orchestrator.identities.erasure_requests import threads_of
from konstruct.orchestrator.models import ChannelIdentity
from memory.models import PersonName
from memory.models.recall import scope_number
from memory.text.languages import fold
from tenants.audit.models import ErasureRequest
from tenants.audit.pseudonyms import is_distinctive
from tenants.context import fetch_column
from tenants.personal_data import OnErasure, personal_tables

# The condition for a person's rows, in a table with agents and users.
OF_PERSON: Final = (
    "tenant_id = %(tenant)s AND user_id = ANY(%(users)s)"
    " AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s)"
)
# Shorter names are ignored, because they are words of many texts.
MIN_NAME_CHARACTERS: Final = 3


def ids_sql() -> str:
    """Return a query for the ids of a person's rows, by which other tables refer to them: UUIDs."""
    uuids = {
        model._meta.db_table
        for model in apps.get_models()
        if isinstance(model._meta.pk, models.UUIDField)
    }
    return " UNION ALL ".join(
        f"SELECT {data.key} AS id FROM {table} WHERE {data.of_person}"
        for table, data in personal_tables().items()
        if data.subject and data.key and table in uuids
    )


IDS: Final = ids_sql()


def _agents_sql() -> str:
    """Return a query for the agents that have rows of a person."""
    return " UNION ".join(
        f"SELECT {data.agent} FROM {table} WHERE {data.of_person} AND {data.agent} IS NOT NULL"
        for table, data in personal_tables().items()
        if data.subject and data.agent and data.on_erasure is OnErasure.DELETE
    )


def patterns_of(user_ids: Sequence[str]) -> list[str]:
    """Return regular expressions of Postgres for texts that name a person, as whole words.

    A text names a person by an id, or by a name that no other person of the tenant has.
    """
    own = PersonName.objects.filter(user_id__in=user_ids).values_list("name", flat=True)
    accounts = ChannelIdentity.objects.filter(user_id__in=user_ids)
    names = {fold(name): name for name in (*own, *accounts.values_list("name", flat=True))}
    others = PersonName.objects.filter(folded__in=names).exclude(user_id__in=user_ids)
    for folded in others.values_list("folded", flat=True):
        names.pop(folded, None)
    words = [re.findall(r"[^\W_]+", name) for name in names.values()]
    texts = [re.escape(user_id) for user_id in user_ids if is_distinctive(user_id)]
    texts += ["[^[:alnum:]]+".join(w) for w in words if len(" ".join(w)) >= MIN_NAME_CHARACTERS]
    return [f"(?<![[:alnum:]]){text}(?![[:alnum:]])" for text in texts]


@dataclass(frozen=True)
class Person:
    """A user of all agents, or of one, with all their ids and threads."""

    tenant_id: UUID
    agent_id: UUID | None
    user_ids: tuple[str, ...]
    """The id in the request is the first."""
    agents: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    """Threads with messages of the person only, or with a session of the person."""
    sessions: tuple[str, ...] = ()
    """Threads with a session of the person."""
    shared_threads: tuple[str, ...] = ()
    """Their threads that also have messages of others."""
    other_sessions: tuple[str, ...] = ()
    """Their threads with a session that does not belong to them."""
    names: tuple[str, ...] = ()
    """`patterns_of` the person in the first round; none of an id without rows, which may be any
    word."""

    @classmethod
    def of(cls, request: ErasureRequest, earlier: Mapping[str, Any]) -> Self:
        """Look up the person's ids, agents and threads, and add those of earlier rounds.

        Args:
            request: the request for the erasure.
            earlier: `fields` of the previous round; empty in the first round.
        """
        user_ids = [*linked_ids(request.user_id), *earlier.get("user_ids", ())]
        person = cls(request.tenant_id, request.agent_id, tuple(dict.fromkeys(user_ids)))
        threads = threads_of(person.user_ids, agent_id=request.agent_id, requested=request.threads)
        strict = request.by_bound_key
        sessions = {t.thread_id for t in threads if t.session_belongs_to_person(strict=strict)}
        with_session = {t.thread_id for t in threads if t.has_session}
        own = {t.thread_id for t in threads if t.belongs_to_person}
        shared = {t.thread_id for t in threads if t.has_messages and t.has_messages_of_others}
        names = () if "names" in earlier or not is_known(user_ids) else patterns_of(user_ids)
        found: dict[str, Iterable[str]] = {
            "agents": map(str, fetch_column(_agents_sql(), person.parameters())),
            "threads": own | sessions,
            "sessions": sessions,
            "shared_threads": shared,
            "other_sessions": with_session - sessions,
            "names": names,
        }
        merged: Any = {
            name: tuple(sorted({*values, *earlier.get(name, ())})) for name, values in found.items()
        }
        return replace(person, **merged)

    def fields(self) -> dict[str, Any]:
        """Return the argument of `of` for the next round, as JSON."""
        names = ("agents", "threads", "sessions", "shared_threads", "other_sessions", "names")
        return {name: list(getattr(self, name)) for name in ("user_ids", *names)}

    def parameters(self, **more: Any) -> dict[str, Any]:
        """Return the parameters of statements about this person."""
        return {
            "tenant": self.tenant_id,
            "users": list(self.user_ids),
            "agent": self.agent_id,
            "scopes": [
                scope_number(UUID(agent), user) for agent in self.agents for user in self.user_ids
            ],
            "threads": list(self.threads),
            "sessions": list(self.sessions),
            "names": list(self.names),
            **more,
        }
