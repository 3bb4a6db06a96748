"""Whom an erasure is about, and by which ids what is theirs is found."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote, quote_plus
from uuid import UUID

from django.db import connection

from konstruct.audit.models import ErasureRequest
from memory.scopes import scope_number

# Whose a row is; every statement about rows of a person's has it.
OF_PERSON = (
    "tenant_id = %(tenant)s AND user_id = %(user)s"
    " AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s)"
)

_AGENTS = f"""
    SELECT agent_id FROM memory_message WHERE {OF_PERSON}
    UNION SELECT agent_id FROM memory_scope WHERE {OF_PERSON}
    UNION SELECT agent_id FROM memory_conversationembedding WHERE {OF_PERSON}
    UNION SELECT agent_id FROM memory_windowclear WHERE {OF_PERSON}
"""
_IDS = f"""
    SELECT id FROM memory_message WHERE {OF_PERSON}
    UNION ALL SELECT id FROM memory_conversationembedding WHERE {OF_PERSON}
    UNION ALL SELECT id FROM memory_recallevent WHERE {OF_PERSON}
    UNION ALL SELECT memory_id FROM memory_memoryentry WHERE {OF_PERSON}
    UNION ALL SELECT id FROM orchestrator_toolcall WHERE {OF_PERSON}
    UNION ALL SELECT id FROM orchestrator_escalation WHERE {OF_PERSON}
    UNION ALL SELECT id FROM orchestrator_channelidentity
        WHERE tenant_id = %(tenant)s AND user_id = %(user)s AND %(agent)s::uuid IS NULL
"""
# A session is a thread's, and a thread may be several people's: those are nobody's alone.
_THREADS = f"""
    SELECT thread_id, bool_or(NOT ({OF_PERSON})) FROM memory_message
    WHERE thread_id IN (SELECT thread_id FROM memory_message WHERE {OF_PERSON})
    GROUP BY thread_id
"""
_SESSIONS = """
    SELECT DISTINCT thread_id FROM checkpoints
    WHERE tenant_id = %(tenant)s AND metadata ->> 'user_id' = %(user)s
      AND (%(agent)s::uuid IS NULL OR metadata ->> 'agent_id' = %(agent)s::text)
"""


@dataclass(frozen=True)
class Person:
    """A user of all agents, or of one; with the ids of what is kept of them."""

    tenant_id: UUID
    user_id: str
    agent_id: UUID | None
    agents: tuple[UUID, ...] = ()
    ids: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    """Threads that are theirs alone."""
    shared_threads: int = 0

    @classmethod
    def of(cls, request: ErasureRequest) -> Self:
        """Look up what is kept at this moment."""
        person = cls(request.tenant_id, request.user_id, request.agent_id)
        threads = dict(person._rows(_THREADS))
        own = {thread for thread, is_shared in threads.items() if not is_shared}
        own |= set(request.threads) | person._column(_SESSIONS)
        return cls(
            person.tenant_id,
            person.user_id,
            person.agent_id,
            agents=tuple(sorted(person._column(_AGENTS))),
            ids=tuple(sorted(str(each) for each in person._column(_IDS))),
            threads=tuple(sorted(own)),
            shared_threads=sum(threads.values()),
        )

    @classmethod
    def read(cls, request: ErasureRequest, progress: dict[str, Any]) -> Self:
        """The person as an interrupted erasure has written them down."""
        return cls(
            request.tenant_id,
            request.user_id,
            request.agent_id,
            agents=tuple(UUID(agent) for agent in progress["agents"]),
            ids=tuple(progress["ids"]),
            threads=tuple(progress["threads"]),
            shared_threads=progress["shared_threads"],
        )

    def written(self) -> dict[str, Any]:
        """What `read` reads."""
        return {
            "agents": [str(agent) for agent in self.agents],
            "ids": list(self.ids),
            "threads": list(self.threads),
            "shared_threads": self.shared_threads,
        }

    def together_with(self, earlier: "Person") -> "Person":
        """The same person, with what an earlier round has found too."""
        return Person(
            self.tenant_id,
            self.user_id,
            self.agent_id,
            agents=_union(self.agents, earlier.agents),
            ids=_union(self.ids, earlier.ids),
            threads=_union(self.threads, earlier.threads),
            shared_threads=max(self.shared_threads, earlier.shared_threads),
        )

    @property
    def scopes(self) -> list[int]:
        """The numbers by which the index of words knows them."""
        return [scope_number(agent, self.user_id) for agent in self.agents]

    def parameters(self) -> dict[str, Any]:
        """Values for the statements about this person."""
        return {
            "tenant": self.tenant_id,
            "user": self.user_id,
            "agent": self.agent_id,
            "ids": list(self.ids),
            "scopes": self.scopes,
            "threads": list(self.threads),
            "word": self.as_word(),
        }

    def as_word(self) -> str:
        """A regular expression of Postgres that finds the user's id as a word of its own.

        As it stands in a text, in JSON, and in an address.
        """
        in_json = json.dumps(self.user_id, ensure_ascii=False)[1:-1]
        forms = {self.user_id, in_json, quote(self.user_id, safe=""), quote_plus(self.user_id)}
        either = "|".join(sorted(re.escape(form) for form in forms))
        return f"(^|[^[:alnum:]])({either})($|[^[:alnum:]])"

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(
                statement, {"tenant": self.tenant_id, "user": self.user_id, "agent": self.agent_id}
            )
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def _column(self, statement: str) -> set[Any]:
        return {value for (value,) in self._rows(statement)}


def _union(*parts: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(sorted({each for part in parts for each in part}))
