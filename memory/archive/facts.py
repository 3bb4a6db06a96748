"""Facts of an exported archive: read from the rows that an export keeps for an import."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from memory.archive.embedder import Embedder
from memory.archive.sqlite_manager import SQLiteManager

# Facts with vectors of another model are embedded again, in batches of this size.
MAX_FACTS_PER_BATCH = 256
_HAS_EXPORT = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'exported'"
_FACTS = "SELECT row FROM exported WHERE kind = 'facts' ORDER BY position"


@dataclass(frozen=True)
class FactHit:
    """A fact that a search found; cosine similarity from -1 to 1."""

    content: str
    similarity: float
    memory_id: str
    user_id: str | None
    agent_id: str | None
    metadata: dict[str, Any]


def search_facts(
    file: SQLiteManager, query: str, k: int, embedder: Embedder, *, now: datetime | None = None
) -> list[FactHit]:
    """Return the `k` facts nearest in meaning to the query, best first.

    Only facts that are valid now: no earlier versions, and none that has ended or expired. A file
    that was not exported from a tenant has none.
    """
    facts = list(_valid_facts(file, now or datetime.now(UTC)))
    if not facts:
        return []
    vectors = np.vstack(
        [
            _vectors(facts[at : at + MAX_FACTS_PER_BATCH], embedder)
            for at in range(0, len(facts), MAX_FACTS_PER_BATCH)
        ]
    )
    asked = np.asarray(embedder.encode([query]), dtype=np.float64)[0]
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
    similarity = np.clip(vectors @ asked / np.where(lengths > 0, lengths, 1.0), -1.0, 1.0)
    best = np.argsort(-similarity, kind="stable")[:k]
    return [
        FactHit(
            content=facts[at]["content"],
            similarity=float(similarity[at]),
            memory_id=facts[at]["memory_id"],
            user_id=facts[at].get("user_id"),
            agent_id=facts[at].get("agent_id"),
            metadata=facts[at].get("metadata") or {},
        )
        for at in best
    ]


def _valid_facts(file: SQLiteManager, now: datetime) -> Iterator[dict[str, Any]]:
    if not file.rows(_HAS_EXPORT):
        return
    for (row,) in file.rows(_FACTS):
        fact = json.loads(row)
        ends = (fact.get(name) for name in ("valid_to", "expires_at"))
        is_over = any(end is not None and datetime.fromisoformat(end) <= now for end in ends)
        is_future = datetime.fromisoformat(fact["valid_from"]) > now
        if fact.get("version_of") is None and not (is_over or is_future):
            yield fact


def _vectors(facts: list[dict[str, Any]], embedder: Embedder) -> Any:
    """The stored vectors of facts; those of another model are embedded again by this one."""
    other = [at for at, fact in enumerate(facts) if fact["embedding_model"] != embedder.version]
    made = iter(embedder.encode([facts[at]["content"] for at in other]) if other else ())  # type: ignore[arg-type]
    return np.array(
        [
            next(made) if at in other else json.loads(fact["embedding"])
            for at, fact in enumerate(facts)
        ],
        dtype=np.float64,
    )
