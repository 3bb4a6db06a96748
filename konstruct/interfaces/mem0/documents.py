"""Facts and their versions, as mem0 tells of memories."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from konstruct.api.resources.agents.agent_names import agent_names
from konstruct.interfaces.mem0.filters import IN_METADATA
from memory.models import MemoryEntry

# What of a fact's metadata mem0 has fields of its own for.
_APART = (*IN_METADATA, "categories")


def documents(facts: Iterable[MemoryEntry], fields: Sequence[str] = ()) -> list[dict[str, Any]]:
    """What is told of facts; one query for the names of all their agents.

    `fields`: only these, and the id.
    """
    facts = list(facts)
    names = agent_names(fact.agent_id for fact in facts if fact.agent_id is not None)
    told = [_document(fact, names) for fact in facts]
    if not fields:
        return told
    return [
        {name: value for name, value in document.items() if name == "id" or name in fields}
        for document in told
    ]


def history(versions: Sequence[MemoryEntry]) -> list[dict[str, Any]]:
    """What became of a fact, oldest first; `versions` are its versions, newest first."""
    oldest_first = [*reversed(versions)]
    befores: list[str | None] = [None, *(version.content for version in oldest_first)]
    names = agent_names(
        version.agent_id for version in versions[:1] if version.agent_id is not None
    )
    return [
        {
            "id": version.memory_id,
            "memory_id": version.version_of or version.memory_id,
            "event": "ADD" if before is None else "UPDATE",
            "old_memory": before,
            "new_memory": version.content,
            "metadata": own_metadata(version.metadata),
            "user_id": version.user_id,
            "agent_id": names.get(version.agent_id) if version.agent_id else None,
            "created_at": version.created_at,
            "updated_at": version.updated_at,
        }
        for version, before in zip(oldest_first, befores, strict=False)
    ]


def own_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata without what mem0 has fields of its own for."""
    return {name: value for name, value in metadata.items() if name not in _APART}


def first_moment_after(day: date) -> datetime:
    """When what is good until a day is over: the next midnight of UTC."""
    return datetime.combine(day, time.min, UTC) + timedelta(days=1)


def _document(fact: MemoryEntry, names: Mapping[UUID, str]) -> dict[str, Any]:
    last_day = None
    if fact.expires_at is not None:
        last_day = (fact.expires_at.astimezone(UTC) - timedelta(microseconds=1)).date()
    document = {
        "id": fact.memory_id,
        "memory": fact.content,
        "user_id": fact.user_id,
        "agent_id": names.get(fact.agent_id) if fact.agent_id else None,
        "app_id": fact.metadata.get("app_id"),
        "run_id": fact.metadata.get("run_id"),
        "metadata": own_metadata(fact.metadata),
        "categories": fact.metadata.get("categories"),
        "created_at": fact.created_at,
        "updated_at": fact.updated_at,
        "timestamp": fact.valid_from,
        "expiration_date": last_day,
    }
    score = getattr(fact, "score", None)
    return document if score is None else document | {"score": score}
