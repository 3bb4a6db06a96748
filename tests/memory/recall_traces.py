"""Recall events as tests write and read them."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from memory.context import recall_events, recall_traces
from memory.models import Message, RecallEvent

EMPTY: dict[str, Any] = {
    "query": "",
    "hits": [],
    "cut": [],
    "facts": [],
    "injected": [],
    "prompt": None,
    "abstained": False,
    "embedding_model": "test",
    "milliseconds": 1.0,
}


def hit_of(message: Message, **values: Any) -> dict[str, Any]:
    """Return a hit of a trace."""
    return {
        "message_id": str(message.pk),
        "external_id": None,
        "thread_id": message.thread_id,
        "role": message.role,
        "name": message.name,
        "content": message.content,
        "created_at": message.created_at.isoformat(),
        "neighbours": [],
        "excluded": [],
        "score": 2.5,
        "probability": 0.5,
        "gate_value": 0.4,
        "channels": {},
        **values,
    }


def fact_of(memory_id: Any, content: str = "", **values: Any) -> dict[str, Any]:
    """Return a fact of a trace."""
    return {
        "memory_id": str(memory_id),
        "content": content,
        "score": 0.5,
        "reason": "",
        "probability": None,
        "quote": "",
        "said_at": None,
        "message_ids": [],
        **values,
    }


def prompt_of(*turns: dict[str, Any]) -> dict[str, Any]:
    """Return the prompt of a trace, of recent turns."""
    section = {"name": "session", "tokens": 9, "share": 99, "left_out": 0, "truncated": False}
    section |= {"cut": [], "messages": list(turns)}
    return {"model_tier": "fast", "budget": 8000, "tokens": 9, "sections": [section]}


def store_trace(
    agent_id: UUID,
    user_id: str,
    *,
    reply_id: UUID | None = None,
    sources: Iterable[UUID] = (),
    **trace: Any,
) -> RecallEvent:
    """Store the event of a reply in the current tenant; `trace` are values of `Prompt.trace`."""
    return recall_events.record(
        {**EMPTY, **trace}, agent_id=agent_id, user_id=user_id, reply_id=reply_id, sources=sources
    )


def is_same(sent: Any, read: Any) -> bool:
    """Return whether a trace was read as it was written; scores are rounded."""
    if isinstance(sent, float) and isinstance(read, float | int):
        return abs(sent - read) <= 1e-3 * max(1, abs(sent))
    if isinstance(sent, Mapping):
        return isinstance(read, Mapping) and all(
            is_same(value, read.get(name)) for name, value in sent.items()
        )
    if isinstance(sent, list | tuple):
        return len(sent) == len(read) and all(map(is_same, sent, read))
    return bool(sent == read)


def trace_of(event: RecallEvent) -> dict[str, Any]:
    """Return the trace of an event, from the present rows of its tenant."""
    return recall_traces.traces([event])[0]
