"""One search over messages and facts, each with its own score."""

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


class Rated(Protocol):
    """An entry that a search may have rated by cosine similarity."""

    @property
    def score(self) -> float | None: ...


T = TypeVar("T", bound=Rated)


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of each kind, best first; None of a kind that was not searched.

    Scores of the two cannot be compared: a message has a probability, a fact a cosine.
    """

    messages: RecallResult | None
    facts: list[MemoryEntry] | None


def relevant_facts(
    facts: Sequence[T],
    *,
    floor: float = FACT_FLOOR,
    near_floor: float = NEAR_FACT_FLOOR,
) -> list[T]:
    """Return the facts that are alike enough to what was asked, and those without a score.

    Args:
        facts: the facts that were found, nearest first.
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
) -> Found:
    """Search both with one vector of the query.

    Args:
        agent_id: whose memory; None: facts of whichever agent, and no messages.
        policy: how messages are recalled; None: they are not.
        facts: how many at most; 0: none are searched.
        gate: leave out facts below the floor that prompts have, see `relevant_facts`.
        shared: also facts that concern no user.
        at: as of a moment.
        filters: what the metadata must be.
    """
    vector = embed([query])[0]
    messages = known = None
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
        known = LongTermMemory().search(
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
            known = relevant_facts(known)
    return Found(messages, known)
