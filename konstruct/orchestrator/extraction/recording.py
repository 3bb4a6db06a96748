"""Records the accepted facts of an answer, and the outcome of each candidate."""

from collections import Counter
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from konstruct.orchestrator.extraction.candidates import (
    AcceptedCandidate,
    ReviewPolicy,
    check_candidates,
)
from konstruct.orchestrator.extraction.fact_requests import Answer, Batch, known_facts
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import ExtractionRun, RunState
from konstruct.orchestrator.notifications import notify_of_reviews
from memory.facts import Author, Outcome, Quote, record_candidate
from memory.models import AuthorKind, MemoryEntry
from tenants.context import required_tenant_id


def record(batch: Batch, run: ExtractionRun, answer: Answer, **values: Any) -> None:
    """Record the candidates that pass all checks, and set their outcomes on the unsaved run.

    Args:
        batch: the messages.
        run: the run.
        answer: the parsed answer.
        **values: fields of each new fact.
    """
    agent, by_id = batch.agent, {message.id: message for message in batch.messages}
    accepted, refused = check_candidates(
        answer.candidates,
        sources=batch.sources,
        known=known_facts(
            batch.thread.agent_id,
            batch.thread.user_id,
            {candidate.slot for candidate in answer.candidates},
        ),
        policy=ReviewPolicy(agent.fact_review, agent.fact_review_by_slot),
    )
    author = Author(AuthorKind.RUN, str(run.id), run.model)
    counts: Counter[str] = Counter()
    documents = []
    new_ids: dict[str, UUID] = {}
    for item in accepted:
        quotes = [Quote(by_id[span.source.id], span.start, span.end) for span in item.spans]
        entry = _entry(batch.thread, run, item, **values)
        entry.embedding = answer.embeddings[item.candidate.fact]
        former = item.supersedes
        recorded = record_candidate(
            entry,
            quotes,
            author=author,
            review=item.review,
            supersedes=None if former is None else former.id or new_ids.get(former.label),
        )
        if recorded.memory_id == entry.memory_id:
            new_ids.setdefault(item.candidate.id, entry.memory_id)
        counts[recorded.outcome] += 1
        counts["superseded"] += recorded.superseded is not None
        documents.append(
            {
                **_document(item),
                "outcome": str(recorded.outcome),
                "memory_id": str(recorded.memory_id),
                "superseded": str(recorded.superseded) if recorded.superseded else None,
            }
        )
    all_refused = [*answer.malformed, *refused]
    documents += [
        {"id": refusal.id, "fact": refusal.fact, "outcome": "refused", "reason": refusal.reason}
        for refusal in all_refused
    ]
    if counts[Outcome.PROPOSED]:
        notify_of_reviews()
    run.candidates = documents
    run.result = {
        **run.result,
        "candidates": len(documents),
        **{name: count for name, count in counts.items() if count},
        "refused": dict(Counter(refusal.reason for refusal in all_refused)),
    }


# Fields of a candidate that its fact has by the same names.
_OF_FACT: Final = {"subject", "slot", "is_multi_valued", "value", "kind", "confidence"}


def _entry(
    thread: Thread, run: ExtractionRun, accepted: AcceptedCandidate, **values: Any
) -> MemoryEntry:
    candidate = accepted.candidate
    dated = {} if accepted.valid_from is None else {
        "valid_from": accepted.valid_from,
        "valid_from_precision": candidate.precision,
    }  # fmt: skip
    return MemoryEntry(
        tenant_id=required_tenant_id(),
        agent_id=thread.agent_id,
        user_id=thread.user_id,
        content=candidate.fact,
        asserter=accepted.asserter,
        run_id=run.id,
        **candidate.model_dump(include=_OF_FACT),
        **dated,
        **values,
    )


def _document(accepted: AcceptedCandidate) -> dict[str, Any]:
    candidate = accepted.candidate
    return {
        **candidate.model_dump(include={"id", "fact", "subject", "slot", "value"}),
        "kind": str(candidate.kind),
        "review": accepted.review,
        "quotes": [
            {"message": str(span.source.id), "start": span.start, "end": span.end}
            for span in accepted.spans
        ],
    }


_FIELDS_AT_END: Final = (
    *("state", "error", "ended_at", "output", "response_format"),
    *("prompt_tokens", "completion_tokens", "cost", "result", "candidates"),
)


def end(run: ExtractionRun, state: RunState, *, error: str = "") -> None:
    """Save the end of a run. Without effect if the run was erased with one of its messages."""
    run.state, run.error, run.ended_at = state, error, timezone.now()
    values = {name: getattr(run, name) for name in _FIELDS_AT_END}
    ExtractionRun.objects.filter(pk=run.pk).update(**values)
