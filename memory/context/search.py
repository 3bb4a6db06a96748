"""One search over what was said and what is known: messages and facts, each by its own measure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.embedding.embedder import embed
from memory.facts import LongTermMemory
from memory.models import MemoryEntry
from memory.recall import RecallResult, recall
from memory.recall.policy import RecallPolicy


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of each kind, best first; None of a kind that was not searched.

    Scores of the two cannot be compared: a message has a probability, a fact a cosine.
    """

    messages: RecallResult | None
    facts: list[MemoryEntry] | None


def search_memory(
    tenant_id: UUID,
    user_id: str,
    query: str,
    *,
    agent_id: UUID | None,
    policy: RecallPolicy | None,
    facts: int,
    shared: bool,
    at: datetime | None = None,
    filters: Mapping[str, Any] | None = None,
) -> Found:
    """Search both with one vector of the query.

    Args:
        agent_id: whose memory; None: facts of whichever agent, and no messages.
        policy: how messages are recalled; None: they are not.
        facts: how many at most; 0: none are searched.
        shared: also facts that are about nobody.
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
    return Found(messages, known)
