"""Facts as an extraction run records them, for tests of their review."""

from typing import Any
from uuid import UUID

from konstruct.orchestrator.models import ExtractionRun, RunState
from memory.facts import Author, Quote, embed_facts, record_candidate
from memory.facts.lifecycle import RecordedCandidate
from memory.models import FactKind, MemoryEntry, Message
from memory.models.facts import AuthorKind
from tenants.context import tenant_scope


def add_run(message: Message, **fields: Any) -> ExtractionRun:
    """Store a run over one message, in the tenant of the caller."""
    values: dict[str, Any] = {
        "state": RunState.APPLIED,
        "message_ids": [message.pk],
        "model": "test-model",
        "prompt_digest": "d" * 64,
        "output": f'{{"facts": ["{message.content[:40]}"]}}',
        "prompt_tokens": 120,
        "completion_tokens": 30,
    }
    return ExtractionRun.objects.create(
        agent_id=message.agent_id,
        user_id=message.user_id,
        thread_id=message.thread_id,
        **{**values, **fields},
    )


def propose(
    message: Message,
    words: str,
    content: str,
    *,
    review: str = "health",
    author: Author | None = None,
    run_id: UUID | None = None,
    **fields: Any,
) -> RecordedCandidate:
    """Record a candidate that rests on words of a message, in the message's tenant."""
    with tenant_scope(message.tenant_id):
        run_id = run_id or add_run(message).pk
        entry = MemoryEntry(
            tenant_id=message.tenant_id,
            agent_id=message.agent_id,
            user_id=message.user_id,
            content=content,
            run_id=run_id,
            **{"kind": FactKind.OBSERVED, **fields},
        )
        embed_facts([entry])
        start = message.content.index(words)
        quotes = [Quote(message, start, start + len(words))]
        author = author or Author(AuthorKind.RUN, str(run_id), "extraction")
        return record_candidate(entry, quotes, author=author, review=review)
