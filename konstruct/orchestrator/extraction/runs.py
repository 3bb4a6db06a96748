"""Extraction runs: request facts from a language model, check its answer, record accepted facts.

A worker's run is stored before the request. Its result is stored in one transaction with the facts,
the cursor of the conversation and the state of the job. If a worker is killed, the next worker
marks its run as failed. No transaction and no connection is open during the request.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from konstruct.llm.completions import LLMRefused
from konstruct.orchestrator import exceptions, models, usage
from konstruct.orchestrator.extraction import checks, fact_requests
from konstruct.orchestrator.messages import Thread, lock_windows
from konstruct.orchestrator.models import Agent, ExtractionCursor, ExtractionRun, RunState
from memory.facts import Author, Quote, lifecycle as facts, record_candidate
from memory.models import AuthorKind, MemoryEntry, Message
from tenants import jobs, traces, transaction
from tenants.audit.people import hold_people, time_zone_of
from tenants.context import execute, required_tenant_id

# Earlier messages in a batch, because the new messages may refer to them.
MAX_CONTEXT_MESSAGES: Final = 6
SWITCHED_OFF: Final = "The agent does not extract facts now (extracts_facts)."
KILLED: Final = "The process ended before the run was done."
NOT_THERE: Final = "A message of the run was erased, or moved to another user."
# Fields of a candidate that its fact has by the same names.
_OF_FACT: Final = {"subject", "slot", "is_multi_valued", "value"}


# --- The queue ------------------------------------------------------------------------------------

# A conversation with new messages has a job until they are processed. The job's key is the id of
# the conversation's `ExtractionCursor`. It is enqueued in the transaction that writes messages, or
# after it, with a lock on the row: a worker that finds no further messages and removes the job has
# seen every message that was written before.
EXTRACTIONS: Final = jobs.JobKind(
    name="extraction",
    do="konstruct.orchestrator.extraction.runs.extract",
    queue="extractions",
    max_attempts=5,  # pauses double from a minute: a quarter of an hour
    first_backoff=60.0,
    max_backoff=6 * 3600.0,
    is_final=lambda error: isinstance(error, LLMRefused),
)

# A failed job gets new attempts with a new message, at most once a day. The row of every other job
# is locked, too.
_ENQUEUE: Final = """
WITH wanted AS (
    SELECT DISTINCT user_id, agent.id AS agent_id, thread_id, lane, newest,
           make_interval(secs => agent.extraction_idle_seconds) AS idle
    FROM unnest(
        %(agents)s::uuid[], %(users)s::text[], %(threads)s::text[], %(lanes)s::uuid[],
        %(newest)s::timestamptz[]
    ) AS thread (agent_id, user_id, thread_id, lane, newest)
    JOIN orchestrator_agent AS agent ON agent.id = thread.agent_id AND agent.extracts_facts
), created AS (
    INSERT INTO orchestrator_extractioncursor (agent_id, user_id, thread_id)
    SELECT agent_id, user_id, thread_id FROM wanted ORDER BY agent_id, user_id, thread_id
    ON CONFLICT DO NOTHING
    RETURNING id, agent_id, user_id, thread_id
), cursors AS (
    SELECT id, agent_id, user_id, thread_id FROM created UNION ALL
    SELECT known.id, known.agent_id, known.user_id, known.thread_id
    FROM orchestrator_extractioncursor AS known JOIN wanted USING (user_id, agent_id, thread_id)
)
INSERT INTO tenants_job AS job (tenant_id, kind, key, lane, due_at, sweep_at, traceparent)
SELECT %(tenant_id)s, 'extraction', cursors.id, lane, at, at, %(traceparent)s::text
FROM cursors JOIN wanted USING (user_id, agent_id, thread_id)
CROSS JOIN LATERAL (
    SELECT greatest(least(newest, statement_timestamp()) + idle, statement_timestamp())
) AS due (at)
ORDER BY cursors.id
ON CONFLICT (tenant_id, kind, key) DO UPDATE SET
    traceparent = EXCLUDED.traceparent, attempts = 0, failed_at = NULL,
    due_at = EXCLUDED.due_at, sweep_at = EXCLUDED.sweep_at
WHERE job.failed_at < now() - interval '1 day'
"""


def enqueue(
    tenant_id: UUID, threads: Collection[Thread], newest: Mapping[Thread, datetime] | None = None
) -> None:
    """Enqueue the extraction from conversations whose agents extract facts, unless it is queued.

    One statement. Call it in the transaction that writes the messages, or in a later one.

    Args:
        tenant_id: the current tenant.
        threads: the conversations, each of the agent and the user of its messages.
        newest: times of their newest messages; by default now. A job is due when its conversation
            is idle.
    """
    if not threads:
        return
    execute(
        _ENQUEUE,
        {
            "tenant_id": tenant_id,
            "agents": [thread.agent_id for thread in threads],
            "users": [thread.user_id for thread in threads],
            "threads": [thread.thread_id for thread in threads],
            # The jobs of one person are done one at a time.
            "lanes": [Thread(thread.agent_id, thread.user_id, "").lane for thread in threads],
            "newest": [(newest or {}).get(thread) for thread in threads],
            "traceparent": traces.traceparent(),
        },
    )


# --- The worker -----------------------------------------------------------------------------------


def extract(job: UUID | jobs.Lease) -> None:
    """Extract facts from the next messages of a conversation, or record the failure.

    The job is postponed if the conversation is not idle yet, if the tokens of today are used, or if
    no language model is configured. A batch without a valid answer after all attempts is skipped.
    Its failed run can be replayed.

    Args:
        job: the job of an ExtractionCursor of the current tenant, or its lease.
    """
    cursor = ExtractionCursor.objects.filter(pk=jobs.key_of(job)).first()
    if cursor is None:
        EXTRACTIONS.finish(jobs.key_of(job))  # it was erased, or merged with another user's cursor
        return
    batch: fact_requests.Batch | None = None
    run: ExtractionRun | None = None

    def extract_next(lease: jobs.Lease) -> None:
        nonlocal batch, run
        batch = _next_batch(cursor, lease)
        if batch is None:
            return
        with lease.transaction():
            hold_people([batch.thread.user_id], agent_ids=[batch.thread.agent_id])
            run = fact_requests.build_run(batch)
            run.save(force_insert=True)
        answer = fact_requests.parse_facts(fact_requests.request_facts(batch, run))
        with lock_windows([batch.thread], lease):
            _require_messages(batch)
            record(batch, run, answer)
            end(run, RunState.APPLIED)
            new = [message for message in batch.messages if message.number > cursor.last_number]
            # The messages of a cut answer are processed again, in smaller batches.
            is_again = fact_requests.CUT in run.result and len(new) > 1
            if not is_again:
                _advance(cursor, batch)
            rows = Message.objects.filter(**batch.thread.as_filter)
            if is_again or rows.filter(number__gt=batch.messages[-1].number).exists():
                EXTRACTIONS.postpone(cursor.pk, timedelta(0))
            else:
                lease.finish()

    def record_failure(error: Exception) -> bool:
        if run is not None:
            end(run, RunState.FAILED, error=str(error))
        is_permanent = EXTRACTIONS.record_failure(cursor.pk, error)
        if is_permanent and batch is not None and isinstance(error, exceptions.ExtractionFailed):
            _advance(cursor, batch)
            EXTRACTIONS.postpone(cursor.pk, timedelta(0))
        return is_permanent

    EXTRACTIONS.run(job, extract_next, on_failure=record_failure)


def _next_batch(cursor: ExtractionCursor, lease: jobs.Lease) -> fact_requests.Batch | None:
    """Return the messages to process now. Without any, finish or postpone the job: return None."""
    with lease.transaction():
        agent = Agent.objects.filter(pk=cursor.agent_id).first()
        if agent is None:
            lease.finish()
            return None
        if not agent.extracts_facts:
            EXTRACTIONS.postpone(cursor.pk, timedelta(days=1), note=SWITCHED_OFF)
            return None
        thread = Thread.of(cursor)
        # Runs of workers that were killed.
        runs = ExtractionRun.objects.filter(**thread.as_filter, requested_by="")
        runs.filter(state=RunState.RUNNING).update(
            state=RunState.FAILED, error=KILLED, ended_at=timezone.now()
        )
        messages = Message.objects.filter(**thread.as_filter)
        later = messages.filter(number__gt=cursor.last_number).order_by("number")
        size = agent.extraction_batch_size
        last = runs.filter(state=RunState.APPLIED).order_by("-created_at").first()
        if last is not None and last.result.get(fact_requests.CUT):
            size = max(later.filter(pk__in=last.message_ids).count() // 2, 1)
        new = list(later[:size])
        if not new:
            lease.finish()
            return None
        idle = timedelta(seconds=agent.extraction_idle_seconds)
        pause = max(message.created_at for message in new) + idle - timezone.now()
        if pause > timedelta(0) and len(new) < size:
            EXTRACTIONS.postpone(cursor.pk, min(pause, idle))
            return None
        new = fact_requests.truncate_batch(new)
        earlier = messages.filter(number__lt=new[0].number).order_by("-number")
        context = list(earlier[:MAX_CONTEXT_MESSAGES])[::-1]
        batch = _batch(agent, thread, [*context, *new])
        try:
            fact_requests.require_model(batch)
        except (exceptions.ExtractionFailed, exceptions.ExtractionLimitReached) as error:
            tomorrow = usage.midnight() + timedelta(days=1)
            EXTRACTIONS.postpone(cursor.pk, tomorrow - timezone.now(), note=str(error))
            return None
        return batch


def _batch(agent: Agent, thread: Thread, messages: Sequence[Message]) -> fact_requests.Batch:
    """Return a batch with the facts that are known, and the time zone of the user."""
    agent_id = None if agent._state.adding else thread.agent_id
    known = fact_requests.known_facts(agent_id, thread.user_id) if thread.user_id else []
    return fact_requests.Batch(
        agent, thread, messages, known, time_zone_of(thread.user_id, agent.time_zone)
    )


def _advance(cursor: ExtractionCursor, batch: fact_requests.Batch) -> None:
    ExtractionCursor.objects.filter(pk=cursor.pk).update(
        last_number=batch.messages[-1].number, processed_at=timezone.now()
    )


# --- One run --------------------------------------------------------------------------------------


def record(
    batch: fact_requests.Batch, run: ExtractionRun, answer: fact_requests.Answer, **values: Any
) -> None:
    """Record the candidates that pass all checks, and set their outcomes on the unsaved run.

    Args:
        batch: the messages.
        run: the run.
        answer: the parsed answer.
        **values: fields of each new fact.
    """
    agent, thread = batch.agent, batch.thread
    by_id = {message.id: message for message in batch.messages}
    slots = {candidate.slot for candidate in answer.candidates}
    accepted, refused = checks.check_candidates(
        answer.candidates,
        sources=batch.sources,
        known=fact_requests.known_facts(thread.agent_id, thread.user_id, slots),
        policy=checks.ReviewPolicy(agent.fact_review, agent.fact_review_by_slot),
    )
    counts: Counter[str] = Counter()
    documents: list[dict[str, Any]] = []
    new_ids: dict[str, UUID] = {}
    for item in accepted:
        candidate, span, former = item.candidate, item.span, item.supersedes
        dated = {"valid_from": item.valid_from, "valid_from_precision": candidate.precision}
        entry = MemoryEntry(
            tenant_id=required_tenant_id(),
            agent_id=thread.agent_id,
            user_id=thread.user_id,
            content=candidate.fact,
            embedding=answer.embeddings[candidate.fact],
            asserter=span.source.speaker,
            kind=item.kind,
            run_id=run.id,
            **candidate.model_dump(include=_OF_FACT),
            **(dated if item.valid_from else {}),
            **values,
        )
        recorded = record_candidate(
            entry,
            [Quote(by_id[span.source.id], span.start, span.end)],
            author=Author(AuthorKind.RUN, str(run.id), run.model),
            review=item.review,
            supersedes=None if former is None else former.id or new_ids.get(former.label),
        )
        if recorded.memory_id == entry.memory_id:
            new_ids.setdefault(candidate.id, entry.memory_id)
        counts[recorded.outcome] += 1
        counts["superseded"] += recorded.superseded is not None
        documents.append(
            {
                **candidate.model_dump(include={"id", "fact", "subject", "slot", "value"}),
                "kind": str(item.kind),
                "review": item.review,
                "quotes": [{"message": str(span.source.id), "start": span.start, "end": span.end}],
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
    run.candidates = documents
    run.result = {
        **run.result,
        "candidates": len(documents),
        **{name: count for name, count in counts.items() if count},
        "refused": dict(Counter(refusal.reason for refusal in all_refused)),
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


def _require_messages(batch: fact_requests.Batch) -> None:
    ids = [message.id for message in batch.messages]
    if Message.objects.filter(**batch.thread.as_filter, pk__in=ids).count() < len(ids):
        raise exceptions.ExtractionFailed(NOT_THERE)


def _messages_of(run: ExtractionRun) -> list[Message]:
    rows = Message.objects.filter(**Thread.of(run).as_filter, pk__in=run.message_ids)
    return list(rows.order_by("number"))


# --- Previews, replays, undo ----------------------------------------------------------------------


def preview(
    *,
    messages: Sequence[Message],
    requested_by: str,
    model: str | None = None,
    replay_of: ExtractionRun | None = None,
) -> ExtractionRun:
    """Extract facts from messages without storing them; return a run with the changes.

    Only the run is stored, after the answer. Do not call it in a transaction: it waits for the
    language model.

    Args:
        messages: messages of one conversation, oldest first.
        requested_by: the author of the request, such as "person:7".
        model: the language model; None: the agent's.
        replay_of: the run that had these messages.

    Raises:
        ExtractionFailed: there are no messages or no language model, or the answer has no list of
            facts. Or a message was erased or moved meanwhile: the run is not stored.
        ExtractionLimitReached: the agent has not enough tokens left for today.
        Busy: the tenant has the maximum number of requests to the language model.
        LLMError: there is no answer.
    """
    if not messages:
        raise exceptions.ExtractionFailed("There are no messages to extract facts from.")
    thread = Thread.of(messages[0])
    agent = Agent.objects.get(pk=thread.agent_id)
    if model is not None:
        agent.extraction_model = model
    batch = _batch(agent, thread, fact_requests.truncate_batch(list(messages)))
    fact_requests.require_model(batch)
    run = fact_requests.build_run(
        batch, requested_by=requested_by, replay_of=replay_of.pk if replay_of else None
    )
    with transaction.atomic():
        held = hold_people([thread.user_id], agent_ids=[thread.agent_id])
    try:
        with fact_requests.request_slot():
            answer = fact_requests.parse_facts(fact_requests.request_facts(batch, run))
        with transaction.atomic():
            _require_messages(batch)
            record(batch, run, answer)
            transaction.set_rollback(True)
    except Exception as error:
        _save_preview(batch, run, held, RunState.FAILED, error=str(error))
        raise
    # Facts that were rolled back with the preview have no id.
    candidates = [candidate for candidate in run.candidates if "memory_id" in candidate]
    rows = MemoryEntry.objects.filter(pk__in=[candidate["memory_id"] for candidate in candidates])
    existing = {str(pk) for pk in rows.values_list("pk", flat=True)}
    for candidate in candidates:
        if candidate["memory_id"] not in existing:
            candidate["memory_id"] = None
    _save_preview(batch, run, held, RunState.PREVIEW)
    return run


def _save_preview(
    batch: fact_requests.Batch,
    run: ExtractionRun,
    held: Mapping[str, str],
    state: RunState,
    *,
    error: str = "",
) -> None:
    """Save a preview, which quotes the messages, unless one of them was erased meanwhile."""
    thread = batch.thread
    with lock_windows([thread]):
        hold_people([thread.user_id], agent_ids=[thread.agent_id], since=held)
        _require_messages(batch)
        run.state, run.error, run.ended_at = state, error, timezone.now()
        run.save(force_insert=True)


@dataclass(frozen=True, slots=True)
class UnsavedExtraction:
    """The extracted facts of messages that are not in the transcript yet."""

    batch: fact_requests.Batch
    run: ExtractionRun
    answer: fact_requests.Answer

    def accepted(self) -> list[checks.AcceptedCandidate]:
        """Return the candidates that pass all checks. No review is required."""
        policy = checks.ReviewPolicy(models.FactReview.NONE)
        sources = self.batch.sources
        return checks.check_candidates(
            self.answer.candidates, sources=sources, known=self.batch.known, policy=policy
        )[0]


def extract_unsaved_messages(
    agent: Agent, user_id: str, messages: Sequence[Message], *, requested_by: str, timeout: float
) -> UnsavedExtraction:
    """Extract facts from messages that are not stored. Do not call it in a transaction.

    Args:
        agent: the agent. An unsaved agent has no limit of tokens.
        user_id: the user; "": no user.
        messages: unsaved messages, oldest first.
        requested_by: the author of the request, such as "program:7".
        timeout: seconds for each response_format that is tried.

    Raises:
        The errors of `preview`.
    """
    thread = Thread(agent.id, user_id, "")
    batch = _batch(agent, thread, messages)
    fact_requests.require_model(batch)
    run = fact_requests.build_run(batch, requested_by=requested_by)
    with fact_requests.request_slot():
        return UnsavedExtraction(
            batch, run, fact_requests.parse_facts(fact_requests.request_facts(batch, run, timeout))
        )


def record_unsaved_extraction(
    extraction: UnsavedExtraction, agent: Agent, messages: Sequence[Message], **values: Any
) -> ExtractionRun:
    """Record the extracted facts, in the transaction that stored the messages.

    Args:
        extraction: the result of `extract_unsaved_messages`.
        agent: the agent of the messages.
        messages: the stored messages, in the same order.
        **values: fields of each new fact, such as its metadata.
    """
    thread = Thread.of(messages[0])
    batch = replace(extraction.batch, agent=agent, thread=thread, messages=messages)
    run = extraction.run
    run.message_ids = [message.id for message in messages]
    for name, value in batch.thread.as_filter.items():
        setattr(run, name, value)
    with lock_windows([batch.thread]):
        run.save(force_insert=True)
        record(batch, run, extraction.answer, **values)
        end(run, RunState.APPLIED)
    return run


def new_messages(agent_id: UUID, user_id: str, thread_id: str) -> list[Message]:
    """Return the messages of a conversation that the next run would process."""
    named = Thread(agent_id, user_id, thread_id).as_filter
    agent = Agent.objects.get(pk=agent_id)
    cursor = ExtractionCursor.objects.filter(**named).first()
    rows = Message.objects.filter(**named, number__gt=cursor.last_number if cursor else 0)
    return list(rows.order_by("number")[: agent.extraction_batch_size])


def replay(run_id: UUID, *, requested_by: str, model: str | None = None) -> ExtractionRun:
    """Make another preview of the messages of a run, such as with another language model.

    Raises the errors of `preview`, and RowNotFound.
    """
    run = get_run(run_id)
    messages = _messages_of(run)
    return preview(messages=messages, requested_by=requested_by, model=model, replay_of=run)


def apply(run_id: UUID) -> ExtractionRun:
    """Record the facts of a preview.

    Raises:
        RowNotFound: the tenant has no such run.
        WrongState: the run is no preview.
        ExtractionFailed: its messages were erased or moved.
    """
    run = get_run(run_id, RunState.PREVIEW)
    thread, messages = Thread.of(run), _messages_of(run)
    if len(messages) < len(run.message_ids):
        raise exceptions.ExtractionFailed(NOT_THERE)
    agent = Agent.objects.get(pk=run.agent_id)
    batch = _batch(agent, thread, messages)
    answer = fact_requests.parse_facts(run.output)
    with lock_windows([thread]):
        run = get_run(run_id, RunState.PREVIEW, is_locked=True)
        _require_messages(batch)
        record(batch, run, answer)
        end(run, RunState.APPLIED)
    return run


def preview_roll_back(run_id: UUID, *, author: Author) -> dict[str, list[MemoryEntry]]:
    """Return the facts that `roll_back` would remove, restore and keep. Raises its errors."""
    get_run(run_id, RunState.APPLIED)
    with transaction.atomic():
        found = facts.roll_back(run_id, author=author)
        transaction.set_rollback(True)
    return found


def roll_back(run_id: UUID, *, author: Author) -> dict[str, int]:
    """Undo a run, as `memory.facts.lifecycle.roll_back` does.

    Returns:
        The numbers of removed, restored and kept facts.

    Raises:
        RowNotFound: the tenant has no such run.
        WrongState: the run was not applied.
    """
    run = get_run(run_id)
    with lock_windows([Thread.of(run)]):
        run = get_run(run_id, RunState.APPLIED, is_locked=True)
        found = facts.roll_back(run_id, author=author)
        counts = {name: len(rows) for name, rows in found.items()}
        run.result = {**run.result, "rolled_back": counts}
        run.state = RunState.ROLLED_BACK
        run.save(update_fields=["state", "result"])
    return counts


def compare(one: ExtractionRun, other: ExtractionRun) -> dict[str, Any]:
    """Compare the accepted candidates of two runs by subject, slot and value.

    Returns:
        "both": candidates of both runs; "only_first" and "only_second": candidates of one run;
        "changed": pairs from the latter two lists with the same subject and slot.
    """
    first, second = (
        {
            (row["subject"].casefold(), row["slot"], row["value"].casefold()): row
            for row in run.candidates
            if row["outcome"] != "refused"
        }
        for run in (one, other)
    )
    only_first = {key: row for key, row in first.items() if key not in second}
    only_second = {key: row for key, row in second.items() if key not in first}
    by_slot = {key[:2]: row for key, row in only_second.items()}
    return {
        "both": [row for key, row in first.items() if key in second],
        "only_first": list(only_first.values()),
        "only_second": list(only_second.values()),
        "changed": [
            [row, by_slot[key[:2]]] for key, row in only_first.items() if key[:2] in by_slot
        ],
    }


def get_run(run_id: UUID, *states: RunState, is_locked: bool = False) -> ExtractionRun:
    """Return a run of the current tenant.

    Raises:
        RowNotFound: there is none with this id.
        WrongState: it has none of the states.
    """
    rows = ExtractionRun.objects.select_for_update() if is_locked else ExtractionRun.objects.all()
    run = rows.filter(pk=run_id).first()
    if run is None:
        raise exceptions.RowNotFound(f"There is no extraction run {run_id}.")
    if states and run.state not in states:
        raise exceptions.WrongState(
            f"The extraction run {run_id} is {run.get_state_display()}, not"
            f" {' or '.join(state.label for state in states)}."
        )
    return run
