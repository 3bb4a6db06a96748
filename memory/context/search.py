"""Searches messages and facts with one vector of the query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar
from uuid import UUID

from memory.conf import FACT_FLOOR, NEAR_FACT_FLOOR, NEAR_FACTS
from memory.embedding.embedder import embed
from memory.facts import LongTermMemory
from memory.models import MemoryEntry
from memory.recall import RecallResult, recall
from memory.recall.policy import RecallPolicy


class Scored(Protocol):
    """An entry that may have a cosine similarity."""

    @property
    def score(self) -> float | None: ...


T = TypeVar("T", bound=Scored)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The results by kind, best first; None for a kind that was not searched.

    Their scores cannot be compared: a message has a probability, a fact a cosine.
    """

    messages: RecallResult | None
    facts: list[MemoryEntry] | None


def relevant_facts(
    facts: Sequence[T],
    *,
    floor: float = FACT_FLOOR,
    near_floor: float = NEAR_FACT_FLOOR,
) -> list[T]:
    """Return the facts that are similar enough to the query, and those without a score.

    Args:
        facts: the found facts, nearest first.
        floor: least cosine similarity of a fact, from -1 to 1.
        near_floor: the least of the NEAR_FACTS nearest.
    """
    return [
        fact
        for place, fact in enumerate(facts)
        if fact.score is None
        or fact.score >= floor
        or (place < NEAR_FACTS and fact.score >= near_floor)
    ]


def search_memory(
    tenant_id: UUID,
    user_id: str,
    query: str,
    *,
    agent_id: UUID | None,
    policy: RecallPolicy | None,
    facts: int,
    gate: bool,
    shared: bool,
    at: datetime | None = None,
    filters: Mapping[str, Any] | None = None,
) -> SearchResult:
    """Search messages and facts with one vector of the query.

    Args:
        agent_id: the agent; None: facts of all agents, and no messages.
        policy: the policy of the recall; None: messages are not searched.
        facts: the maximum number of facts; 0: none are searched.
        gate: leave out facts below the floor, see `relevant_facts`.
        shared: include facts about no user.
        at: the state at this time.
        filters: conditions on the metadata.
    """
    vector = embed([query])[0]
    messages = entries = None
    if policy is not None and agent_id is not None:
        messages = recall(
            tenant_id,
            agent_id,
            user_id,
            query,
            policy=policy,
            at=at,
            filters=filters,
            query_embedding=vector,
        )
    if facts:
        entries = LongTermMemory().search(
            tenant_id,
            vector,
            facts,
            agent_id,
            user_id=user_id,
            shared=shared,
            filters=filters,
            at=at,
        )
        if gate:
            entries = relevant_facts(entries)
    return SearchResult(messages, entries)
