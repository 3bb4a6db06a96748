"""Extraction runs: request facts from a language model, check its answer, record accepted facts.

A run is stored before the request, and its result in one transaction with the facts, the cursor of
the conversation and the state of the job. A killed worker leaves all of it or nothing, and the next
one marks its run as failed. During the request there is no open transaction and no connection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from konstruct.orchestrator.exceptions import (
    ExtractionFailed,
    ExtractionLimitReached,
    ExtractionRunNotFound,
    WrongRunState,
)
from konstruct.orchestrator.extraction import prompt, queue
from konstruct.orchestrator.extraction.asking import (
    Answer,
    Batch,
    ask,
    check_limit,
    known_facts,
    new_run,
    read,
    share,
    up_to_limit,
)
from konstruct.orchestrator.extraction.candidates import Accepted, Policy, check
from konstruct.orchestrator.extraction.recording import end, record
from konstruct.orchestrator.messages import Thread, locked_windows
from konstruct.orchestrator.models import (
    Agent,
    ExtractionCursor,
    ExtractionRun,
    FactReview,
    RunState,
)
from memory.facts import Author
from memory.facts import lifecycle as facts
from memory.models import MemoryEntry, Message
from tenants import transaction
from tenants.jobs import Lease

# Messages before the first new one, which it may refer to.
MAX_CONTEXT_MESSAGES: Final = 6
SWITCHED_OFF: Final = "The agent does not extract facts now (extracts_facts)."
KILLED: Final = "The process ended before the run was done."


# --- The worker -----------------------------------------------------------------------------------


def extract(cursor_id: UUID) -> None:
    """Extract facts from the next messages of a conversation, or record the failure.

    If the conversation is not idle yet, or today's tokens are used, the job is postponed. A batch
    without a valid answer after all attempts is skipped: its run stays as failed, and can be
    replayed.

    Args:
        cursor_id: of an ExtractionCursor of the current tenant.
    """
    cursor = ExtractionCursor.objects.filter(pk=cursor_id).first()
    if cursor is None:
        queue.EXTRACTIONS.finish(cursor_id)  # it was erased, or merged into another user's
        return
    work = _Extraction(cursor)
    lane = Thread(cursor.agent_id, cursor.user_id, "").lane
    queue.EXTRACTIONS.run(cursor_id, work.extract, lane=lane, on_failure=work.record_failure)


@dataclass
class _Extraction:
    """One attempt, with the data for recording its failure."""

    cursor: ExtractionCursor
    batch: Batch | None = None
    run: ExtractionRun | None = None

    def extract(self, lease: Lease) -> None:
        self.batch = batch = _next_batch(self.cursor, lease)
        if batch is None:
            return
        with lease.transaction():
            self.run = run = _create_run(batch)
        _apply(batch, run, ask(batch, run), lease=lease, cursor=self.cursor)

    def record_failure(self, error: Exception) -> bool:
        if self.run is not None:
            end(self.run, RunState.FAILED, error=str(error))
        is_given_up = queue.EXTRACTIONS.record_failure(self.cursor.pk, error)
        if is_given_up and self.batch is not None and isinstance(error, ExtractionFailed):
            _advance(self.cursor, self.batch)
            queue.EXTRACTIONS.postpone(self.cursor.pk, timedelta(0))
        return is_given_up


def _next_batch(cursor: ExtractionCursor, lease: Lease) -> Batch | None:
    """Return the messages to process now; or finish or postpone the job, and return None."""
    with lease.transaction():
        agent = Agent.objects.filter(pk=cursor.agent_id).first()
        if agent is None:
            lease.finish()
            return None
        if not agent.extracts_facts:
            queue.EXTRACTIONS.postpone(cursor.pk, timedelta(days=1), note=SWITCHED_OFF)
            return None
        # A run of an earlier lease, which was interrupted.
        ExtractionRun.objects.filter(**_of(cursor), state=RunState.RUNNING, requested_by="").update(
            state=RunState.FAILED, error=KILLED, ended_at=timezone.now()
        )
        thread = Thread(cursor.agent_id, cursor.user_id, cursor.thread_id)
        of_thread = Message.objects.filter(**thread.named)
        new = list(
            of_thread.filter(number__gt=cursor.last_number).order_by("number")[
                : agent.extraction_batch_size
            ]
        )
        if not new:
            lease.finish()
            return None
        pause = queue.time_until_idle(agent, max(message.created_at for message in new))
        if pause and len(new) < agent.extraction_batch_size:
            queue.EXTRACTIONS.postpone(cursor.pk, pause)
            return None
        new = up_to_limit(new)
        before = of_thread.filter(number__lt=new[0].number).order_by("-number")
        context = list(before[:MAX_CONTEXT_MESSAGES])[::-1]
        batch = Batch(agent, thread, [*context, *new], known_facts(thread))
        try:
            check_limit(batch)
        except ExtractionLimitReached as error:
            queue.EXTRACTIONS.postpone(cursor.pk, _until_tomorrow(), note=str(error))
            return None
        return batch


def _until_tomorrow() -> timedelta:
    now = timezone.now().astimezone(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + timedelta(days=1) - now


def _advance(cursor: ExtractionCursor, batch: Batch) -> None:
    ExtractionCursor.objects.filter(pk=cursor.pk).update(
        last_number=batch.messages[-1].number, processed_at=timezone.now()
    )


# --- One run --------------------------------------------------------------------------------------


def _create_run(batch: Batch, **values: Any) -> ExtractionRun:
    run = new_run(batch, **values)
    run.save(force_insert=True)
    return run


def _apply(
    batch: Batch,
    run: ExtractionRun,
    output: str,
    *,
    lease: Lease | None = None,
    cursor: ExtractionCursor | None = None,
) -> None:
    """Record the facts of an answer, and end the run, in one transaction.

    Raises:
        ExtractionFailed: the answer has no list of facts, or its messages were erased or moved.
        LeaseLost: another worker has the job. Nothing was written.
    """
    answer = read(output)
    with locked_windows([batch.thread], lease):
        _require_messages(batch)
        record(batch, run, answer)
        end(run, RunState.APPLIED)
        if lease is not None and cursor is not None:
            _advance(cursor, batch)
            later = Message.objects.filter(
                **batch.thread.named, number__gt=batch.messages[-1].number
            )
            if later.exists():
                queue.EXTRACTIONS.postpone(cursor.pk, timedelta(0))
            else:
                lease.finish()


def _require_messages(batch: Batch) -> None:
    ids = [message.id for message in batch.messages]
    if Message.objects.filter(**batch.thread.named, pk__in=ids).count() < len(ids):
        raise ExtractionFailed("A message of the run was erased, or moved to another user.")


def _of(row: ExtractionCursor | ExtractionRun) -> dict[str, Any]:
    return {"agent_id": row.agent_id, "user_id": row.user_id, "thread_id": row.thread_id}


# --- Previews, replays, undo ----------------------------------------------------------------------


def preview(
    *,
    messages: Sequence[Message],
    requested_by: str,
    model: str | None = None,
    replay_of: ExtractionRun | None = None,
) -> ExtractionRun:
    """Request the facts of messages, and return a run that shows the changes.

    Only the run is stored. Do not call it in a transaction: it waits for the language model.

    Args:
        messages: of one conversation, oldest first, with their tenant's current agent.
        requested_by: the author of the request, such as "person:7".
        model: the language model; None: the agent's.
        replay_of: the run whose input is repeated.

    Raises:
        ExtractionFailed: there are no messages, or the answer has no list of facts.
        ExtractionLimitReached: the agent has not enough tokens left today.
        Busy: the tenant has the maximum number of requests to the language model.
        LLMError: there is no answer.
    """
    if not messages:
        raise ExtractionFailed("There are no messages to extract facts from.")
    thread = Thread.of(messages[0])
    agent = Agent.objects.get(pk=thread.agent_id)
    if model is not None:
        agent.extraction_model = model
    batch = Batch(agent, thread, up_to_limit(list(messages)), known_facts(thread))
    check_limit(batch)
    longest = len(prompt.FORMATS) * timedelta(seconds=settings.LLM_TIMEOUT) + queue.PREVIEW_GRACE
    with transaction.atomic():
        run = _create_run(
            batch, requested_by=requested_by, replay_of=replay_of.pk if replay_of else None
        )
        queue.PREVIEWS.enqueue_many([run.pk], delay=longest)
    try:
        with share():
            answer = read(ask(batch, run))
        with transaction.atomic():
            _require_messages(batch)
            record(batch, run, answer)
            transaction.set_rollback(True)
    except Exception as error:
        _end_preview(run, RunState.FAILED, error=str(error))
        raise
    existing = set(
        MemoryEntry.objects.filter(
            pk__in=[each["memory_id"] for each in run.candidates if "memory_id" in each]
        ).values_list("pk", flat=True)
    )
    run.candidates = [
        {**each, "memory_id": each["memory_id"] if UUID(each["memory_id"]) in existing else None}
        if "memory_id" in each
        else each
        for each in run.candidates
    ]
    _end_preview(run, RunState.PREVIEW)
    return run


def _end_preview(run: ExtractionRun, state: RunState, *, error: str = "") -> None:
    with transaction.atomic():
        end(run, state, error=error)
        queue.PREVIEWS.finish(run.pk)


def end_interrupted_preview(run_id: UUID) -> None:
    """Mark a preview as failed if it has not ended by the time of its job."""
    with transaction.atomic():
        ExtractionRun.objects.filter(pk=run_id, state=RunState.RUNNING).update(
            state=RunState.FAILED, error=KILLED, ended_at=timezone.now()
        )
        queue.PREVIEWS.finish(run_id)


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer of a language model about messages that are not in the transcript yet."""

    batch: Batch
    run: ExtractionRun
    answer: Answer

    def accepted(self) -> list[Accepted]:
        """Return the candidates that pass all checks, without a review."""
        policy = Policy(FactReview.NONE)
        sources = self.batch.sources
        return check(self.answer.candidates, sources=sources, policy=policy)[0]


def answer_now(
    agent: Agent, user_id: str, messages: Sequence[Message], *, requested_by: str, timeout: float
) -> Answered:
    """Request the facts of messages for a waiting request. Do not call it in a transaction.

    Args:
        agent: the agent; one that is not stored has no limit.
        user_id: the user; empty: none.
        messages: rows that are not stored yet, oldest first.
        requested_by: the author of the request, such as "program:7".
        timeout: seconds.

    Raises:
        The errors of `preview`.
    """
    thread = Thread(agent.id, user_id, "")
    is_stored = not agent._state.adding and user_id
    batch = Batch(agent, thread, messages, known_facts(thread) if is_stored else [])
    check_limit(batch)
    run = new_run(batch, requested_by=requested_by)
    with share():
        return Answered(batch, run, read(ask(batch, run, timeout)))


def record_now(
    answered: Answered, agent: Agent, messages: Sequence[Message], **values: Any
) -> ExtractionRun:
    """Record a run of stored messages, in the transaction that stored them.

    Args:
        answered: of `answer_now`.
        agent: the agent of the messages.
        messages: the rows, in the order of those in the request.
        **values: of each new fact, such as its metadata.
    """
    batch = Batch(agent, Thread.of(messages[0]), messages, answered.batch.known)
    run = answered.run
    run.message_ids = [message.id for message in messages]
    for name, value in batch.thread.named.items():
        setattr(run, name, value)
    with locked_windows([batch.thread]):
        run.save(force_insert=True)
        record(batch, run, answered.answer, **values)
        end(run, RunState.APPLIED)
    return run


def new_messages(agent_id: UUID, user_id: str, thread_id: str) -> list[Message]:
    """Return the messages of a conversation that the next run would process."""
    named = {"agent_id": agent_id, "user_id": user_id, "thread_id": thread_id}
    agent = Agent.objects.get(pk=agent_id)
    cursor = ExtractionCursor.objects.filter(**named).first()
    rows = Message.objects.filter(**named, number__gt=cursor.last_number if cursor else 0)
    return list(rows.order_by("number")[: agent.extraction_batch_size])


def replay(run_id: UUID, *, requested_by: str, model: str | None = None) -> ExtractionRun:
    """Preview the input of a run again, such as with another language model.

    Raises the errors of `preview`, and ExtractionRunNotFound.
    """
    run = get_run(run_id)
    rows = Message.objects.filter(**_of(run), pk__in=run.message_ids).order_by("number")
    return preview(messages=list(rows), requested_by=requested_by, model=model, replay_of=run)


def apply(run_id: UUID) -> ExtractionRun:
    """Record the facts of a preview.

    Raises:
        ExtractionRunNotFound: the tenant has no such run.
        WrongRunState: the run is no preview.
        ExtractionFailed: its messages were erased or moved.
    """
    run = get_run(run_id, RunState.PREVIEW)
    rows = Message.objects.filter(**_of(run), pk__in=run.message_ids).order_by("number")
    thread = Thread(run.agent_id, run.user_id, run.thread_id)
    messages = list(rows)
    if len(messages) < len(run.message_ids):
        raise ExtractionFailed("A message of the run was erased, or moved to another user.")
    batch = Batch(Agent.objects.get(pk=run.agent_id), thread, messages, known_facts(thread))
    answer = read(run.output)
    with locked_windows([thread]):
        run = get_run(run_id, RunState.PREVIEW, is_locked=True)
        _require_messages(batch)
        record(batch, run, answer)
        end(run, RunState.APPLIED)
    return run


def roll_back(run_id: UUID, *, author: Author) -> dict[str, int]:
    """Undo a run as a unit, as `memory.facts.roll_back` does.

    Returns:
        Counts of removed, restored and kept facts.

    Raises:
        ExtractionRunNotFound: the tenant has no such run.
        WrongRunState: the run was not applied.
    """
    run = get_run(run_id)
    with locked_windows([Thread(run.agent_id, run.user_id, run.thread_id)]):
        run = get_run(run_id, RunState.APPLIED, is_locked=True)
        counts = facts.roll_back(run_id, author=author)
        run.result = {**run.result, "rolled_back": counts}
        run.state = RunState.ROLLED_BACK
        run.save(update_fields=["state", "result"])
    return counts


def compare(one: ExtractionRun, other: ExtractionRun) -> dict[str, Any]:
    """Compare the accepted candidates of two runs by subject, slot and value.

    Returns:
        "both": candidates of the first run that the other one has too; "only_first" and
        "only_second"; and "changed": pairs of candidates of the same subject and slot with
        different values, which are in the lists before too.
    """
    first, second = (_accepted_by_value(run) for run in (one, other))
    only_first = [each for key, each in first.items() if key not in second]
    only_second = [each for key, each in second.items() if key not in first]
    slots = {(each["subject"].casefold(), each["slot"]): each for each in only_second}
    changed = [
        [each, slots[slot]]
        for each in only_first
        if (slot := (each["subject"].casefold(), each["slot"])) in slots
    ]
    return {
        "both": [each for key, each in first.items() if key in second],
        "only_first": only_first,
        "only_second": only_second,
        "changed": changed,
    }


def _accepted_by_value(run: ExtractionRun) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {
        (each["subject"].casefold(), each["slot"], each["value"].casefold()): each
        for each in run.candidates
        if each["outcome"] != "refused"
    }


def get_run(run_id: UUID, *states: RunState, is_locked: bool = False) -> ExtractionRun:
    """Return a run of the current tenant.

    Raises:
        ExtractionRunNotFound: there is none with this id.
        WrongRunState: it has none of the states.
    """
    rows = ExtractionRun.objects.select_for_update() if is_locked else ExtractionRun.objects.all()
    run = rows.filter(pk=run_id).first()
    if run is None:
        raise ExtractionRunNotFound(f"There is no extraction run {run_id}.")
    if states and run.state not in states:
        raise WrongRunState(
            f"The extraction run {run_id} is {run.get_state_display()}, not"
            f" {' or '.join(state.label for state in states)}."
        )
    return run
