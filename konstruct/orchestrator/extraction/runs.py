"""Extraction runs: ask a language model for facts, check its answer, record what is accepted.

A run is written down before the language model is asked, and its result in one transaction with
the facts, the cursor of the conversation and the state of the job. A worker that is killed leaves
all of it or nothing, and the next one marks its run as failed. While the language model is asked,
neither a transaction nor a connection is held.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from django.conf import settings
from django.utils import timezone

from konstruct.llm.completions import Completion, split_credentials
from konstruct.llm.exceptions import LLMRefused
from konstruct.orchestrator import metering, runner
from konstruct.orchestrator.exceptions import (
    Busy,
    ExtractionFailed,
    ExtractionLimitReached,
    ExtractionRunNotFound,
    WrongRunState,
)
from konstruct.orchestrator.extraction import prompt, queue, rules
from konstruct.orchestrator.extraction.candidates import (
    Accepted,
    AnswerInvalid,
    Candidate,
    Known,
    Policy,
    Refused,
    Source,
    check,
    dump,
    parse,
)
from konstruct.orchestrator.messages import KonstructMessage, Thread, locked_windows
from konstruct.orchestrator.models import Agent, ExtractionCursor, ExtractionRun, RunState
from memory.embedding.embedder import embed
from memory.facts import Author, Quote, record_candidate
from memory.facts import lifecycle as facts
from memory.models import AuthorKind, MemoryEntry, Message
from tenants import transaction
from tenants.context import required_tenant_id
from tenants.jobs import Lease, LeaseLost
from tenants.limits.fair_shares import FairShares

logger = logging.getLogger(__name__)

PURPOSE: Final = "extraction"
# Messages before the first new one, which it may refer to.
MAX_CONTEXT_MESSAGES: Final = 6
# Of the known facts, so many are in the prompt, those that changed last.
MAX_KNOWN_FACTS: Final = 100
# A batch ends before the message with which it would have more characters.
MAX_BATCH_CHARACTERS: Final = 60_000
# HTTP statuses of a server that does not know a response_format.
UNKNOWN_FORMAT_STATUSES: Final = frozenset({400, 415, 422, 501})
KILLED: Final = "The worker ended before the run was done."

# Requests that wait for a run, each in a thread of the web process. A quarter is for tenants that
# have none.
shares = FairShares(settings.MEM0_CONCURRENCY, settings.MEM0_CONCURRENCY // 4)
# The format that a model at an endpoint turned out to support.
_known_formats: dict[tuple[str, str], str] = {}


@dataclass(frozen=True, slots=True)
class Batch:
    """The messages of one run, with the facts that its prompt names."""

    agent: Agent
    thread: Thread
    messages: Sequence[Message]
    known: Sequence[Known]

    @property
    def sources(self) -> list[Source]:
        """The messages as the prompt labels them."""
        return [
            Source(
                label=f"m{position}",
                id=message.id,
                role=message.role,
                speaker=message.name.strip() or message.role,
                content=message.content[:MAX_BATCH_CHARACTERS],
                created_at=message.created_at,
                user_id=message.user_id,
            )
            for position, message in enumerate(self.messages, start=1)
        ]

    @property
    def prompt(self) -> list[dict[str, str]]:
        """The messages of the request."""
        return prompt.prompt(self.sources, self.known)


# --- The worker -----------------------------------------------------------------------------------


def extract(cursor_id: UUID) -> None:
    """Extract facts from the next messages of a conversation, or record why not.

    Where the conversation is not quiet yet, or today's tokens are used, the job is postponed. A
    batch of which no attempt led to a list of facts is passed over: its run stays as failed, and
    can be replayed.

    Args:
        cursor_id: of an ExtractionCursor of the current tenant.
    """
    cursor = ExtractionCursor.objects.filter(pk=cursor_id).first()
    if cursor is None:
        queue.EXTRACTIONS.finish(cursor_id)  # it was erased, or merged into another user's
        return
    of_user = Thread(cursor.agent_id, cursor.user_id, "")
    run: ExtractionRun | None = None
    batch: Batch | None = None
    try:
        with queue.EXTRACTIONS.leased(cursor_id, of_user.lane) as lease:
            if lease is None:
                return
            try:
                lease.refuse_lost()
                batch = _next_batch(cursor, lease)
                if batch is None:
                    return
                with lease.transaction():
                    run = _create_run(batch)
                output = _ask(batch, run)
                _apply(batch, run, output, lease=lease, cursor=cursor)
            except LeaseLost:
                raise
            except Exception as error:  # any error is for people to read, at the run
                with lease.transaction():
                    _record_failure(cursor, batch, run, error, lease)
    except LeaseLost as error:
        logger.warning("%s", error)


def _next_batch(cursor: ExtractionCursor, lease: Lease) -> Batch | None:
    """Return the messages to process now; or finish or postpone the job, and return None."""
    with lease.transaction():
        agent = Agent.objects.filter(pk=cursor.agent_id, extracts_facts=True).first()
        if agent is None:
            lease.finish()
            return None
        # A run of an earlier lease was interrupted.
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
        pause = queue.until_quiet(agent, max(message.created_at for message in new))
        if pause and len(new) < agent.extraction_batch_size:
            queue.postpone(lease, pause)
            return None
        new = _up_to_limit(new)
        before = of_thread.filter(number__lt=new[0].number).order_by("-number")
        context = list(before[:MAX_CONTEXT_MESSAGES])[::-1]
        batch = Batch(agent, thread, [*context, *new], _known(thread))
        try:
            check_limit(batch)
        except ExtractionLimitReached as error:
            queue.postpone(lease, _until_tomorrow(), str(error))
            return None
        return batch


def _up_to_limit(messages: list[Message]) -> list[Message]:
    characters, count = 0, 0
    for message in messages:
        characters += len(message.content)
        if count and characters > MAX_BATCH_CHARACTERS:
            break
        count += 1
    return messages[:count]


def check_limit(batch: Batch) -> None:
    """Refuse a batch for which the agent has not enough tokens left today (UTC).

    Raises:
        ExtractionLimitReached: the limit would be passed.
    """
    limit = batch.agent.extraction_max_tokens_per_day
    if limit is None or not settings.LLM_POOL_URL:
        return
    used = metering.tokens_today(batch.agent.id, PURPOSE)
    needed = metering.estimated_tokens(batch.prompt)
    if used + needed > limit:
        raise ExtractionLimitReached(
            f"The agent has used {used:,} of {limit:,} tokens for facts today (UTC), and the next"
            f" request needs about {needed:,}. It continues tomorrow."
        )


def _until_tomorrow() -> timedelta:
    now = timezone.now().astimezone(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + timedelta(days=1) - now


def _record_failure(
    cursor: ExtractionCursor,
    batch: Batch | None,
    run: ExtractionRun | None,
    error: Exception,
    lease: Lease,
) -> None:
    if run is not None:
        _end(run, RunState.FAILED, error=str(error))
    is_given_up = queue.EXTRACTIONS.record_failure(cursor.pk, error)
    if is_given_up and batch is not None and isinstance(error, ExtractionFailed):
        _advance(cursor, batch)
        queue.postpone(lease, timedelta(0))


def _advance(cursor: ExtractionCursor, batch: Batch) -> None:
    ExtractionCursor.objects.filter(pk=cursor.pk).update(
        last_number=batch.messages[-1].number, processed_at=timezone.now()
    )


# --- One run --------------------------------------------------------------------------------------


def _create_run(batch: Batch, **values: Any) -> ExtractionRun:
    has_model = bool(settings.LLM_POOL_URL)
    url, _ = split_credentials(settings.LLM_POOL_URL)
    return ExtractionRun.objects.create(
        **batch.thread.named,
        message_ids=[message.id for message in batch.messages],
        model=_model(batch.agent) if has_model else "",
        endpoint=url if has_model else "",
        prompt_digest=prompt.PROMPT_DIGEST if has_model else "",
        **values,
    )


def _model(agent: Agent) -> str:
    return agent.extraction_model or agent.model or settings.LLM_MODEL or agent.model_tier


def _ask(batch: Batch, run: ExtractionRun) -> str:
    """Return the answer of the language model, or of the rules where there is none.

    The answer, its format and its tokens are put into the run, which is not saved.

    Raises:
        LLMError: there is no answer.
        ExtractionFailed: it was cut or withheld.
    """
    if not settings.LLM_POOL_URL:
        run.output = dump(rules.candidates(batch.sources))
        return run.output
    known = _known_format(run.endpoint, run.model)
    for response_format in prompt.FORMATS[prompt.FORMATS.index(known) :]:
        run.response_format = response_format
        try:
            completion = _request(batch, run)
            break
        except LLMRefused as error:
            is_last = response_format == prompt.FORMATS[-1]
            if is_last or error.status not in UNKNOWN_FORMAT_STATUSES:
                raise
    _known_formats[run.endpoint, run.model] = run.response_format
    run.output = completion.text
    if completion.finish_reason == "length":
        raise ExtractionFailed(
            "The answer of the language model was cut at its limit of tokens. Lower"
            " extraction_batch_size, or raise the model's limit."
        )
    if completion.finish_reason == "content_filter":
        raise ExtractionFailed("The content filter of the language model withheld its answer.")
    return run.output


def _known_format(endpoint: str, model: str) -> str:
    """Return the format that worked last; the first one for a model that was not asked yet."""
    if (endpoint, model) not in _known_formats:
        last = ExtractionRun.objects.filter(endpoint=endpoint, model=model).exclude(
            state__in=(RunState.RUNNING, RunState.FAILED)
        )
        found = last.order_by("-created_at").values_list("response_format", flat=True).first()
        _known_formats[endpoint, model] = found or prompt.FORMATS[0]
    return _known_formats[endpoint, model]


def _request(batch: Batch, run: ExtractionRun) -> Completion:
    messages = batch.prompt
    agent = Agent(
        id=batch.agent.id,
        name=batch.agent.name,
        model=batch.agent.extraction_model or batch.agent.model,
        model_tier=batch.agent.model_tier,
    )
    message = KonstructMessage(
        id=uuid4(),
        tenant_id=required_tenant_id(),
        channel=PURPOSE,
        content=messages[-1]["content"],
        **batch.thread.named,  # type: ignore[arg-type]
    )
    with metering.record_call(agent_id=agent.id, purpose=PURPOSE, model=run.model) as call:
        try:
            completion = runner.complete(
                message,
                agent,
                messages,
                runner.RunOptions(options=prompt.options(run.response_format)),
            )
            call.count(messages, completion)
        finally:
            run.prompt_tokens += call.prompt_tokens
            run.completion_tokens += call.completion_tokens
            run.cost += call.cost
    return completion


@dataclass(frozen=True, slots=True)
class _Answer:
    """The candidates of an answer, with the embeddings of their facts."""

    candidates: Sequence[Candidate]
    malformed: Sequence[Refused]
    embeddings: Mapping[str, list[float]]


def _read(output: str) -> _Answer:
    """Parse an answer and embed its facts together. Call it outside of a transaction."""
    try:
        candidates, malformed = parse(output)
    except AnswerInvalid as error:
        raise ExtractionFailed(f"The language model gave no list of facts: {error}.") from error
    texts = list(dict.fromkeys(each.fact for each in candidates))
    return _Answer(candidates, malformed, dict(zip(texts, embed(texts), strict=True)))


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
    answer = _read(output)
    with locked_windows([batch.thread], lease):
        _require_messages(batch)
        _record(batch, run, answer)
        _end(run, RunState.APPLIED)
        if lease is not None and cursor is not None:
            _advance(cursor, batch)
            later = Message.objects.filter(
                **batch.thread.named, number__gt=batch.messages[-1].number
            )
            if later.exists():
                queue.postpone(lease, timedelta(0))
            else:
                lease.finish()


def _require_messages(batch: Batch) -> None:
    ids = [message.id for message in batch.messages]
    if Message.objects.filter(**batch.thread.named, pk__in=ids).count() < len(ids):
        raise ExtractionFailed("A message of the run was erased, or moved to another user.")


def _record(batch: Batch, run: ExtractionRun, answer: _Answer) -> None:
    """Record the candidates that pass all checks, and put the outcomes into the run."""
    agent, by_id = batch.agent, {message.id: message for message in batch.messages}
    accepted, refused = check(
        answer.candidates,
        sources=batch.sources,
        known=_known(batch.thread, {each.slot for each in answer.candidates}),
        policy=Policy(
            agent.fact_review, agent.fact_review_by_slot, "" if run.model else rules.REVIEW_REASON
        ),
    )
    author = Author(AuthorKind.RUN, str(run.id), run.model or "rules")
    counts: Counter[str] = Counter()
    documents = []
    for each in accepted:
        quotes = [Quote(by_id[span.source.id], span.start, span.end) for span in each.spans]
        entry = _entry(batch.thread, run, each)
        entry.embedding = answer.embeddings[each.candidate.fact]
        recorded = record_candidate(entry, quotes, author=author, review=each.review)
        counts[recorded.outcome] += 1
        counts["superseded"] += recorded.superseded is not None
        documents.append(
            {
                **_document(each),
                "outcome": str(recorded.outcome),
                "memory_id": str(recorded.memory_id),
                "superseded": str(recorded.superseded) if recorded.superseded else None,
            }
        )
    all_refused = [*answer.malformed, *refused]
    documents += [
        {"id": each.id, "fact": each.fact, "outcome": "refused", "reason": each.reason}
        for each in all_refused
    ]
    run.candidates = documents
    run.result = {
        "candidates": len(documents),
        **{name: count for name, count in counts.items() if count},
        "refused": dict(Counter(each.reason for each in all_refused)),
    }


def _entry(thread: Thread, run: ExtractionRun, accepted: Accepted) -> MemoryEntry:
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
        subject=candidate.subject,
        slot=candidate.slot,
        is_multi_valued=candidate.is_multi_valued,
        value=candidate.value,
        kind=candidate.kind,
        asserter=accepted.asserter,
        confidence=candidate.confidence,
        run_id=run.id,
        **dated,
    )


def _document(accepted: Accepted) -> dict[str, Any]:
    candidate = accepted.candidate
    return {
        "id": candidate.id,
        "fact": candidate.fact,
        "subject": candidate.subject,
        "slot": candidate.slot,
        "value": candidate.value,
        "kind": str(candidate.kind),
        "review": accepted.review,
        "quotes": [
            {"message": str(span.source.id), "start": span.start, "end": span.end}
            for span in accepted.spans
        ],
    }


def _known(thread: Thread, slots: set[str] | None = None) -> list[Known]:
    """Return active facts of the agent and the user that have a slot, newest change first.

    Args:
        thread: of the agent and the user.
        slots: all facts of these slots; None: of all slots, MAX_KNOWN_FACTS.
    """
    rows = MemoryEntry.objects.of_tenant(required_tenant_id()).as_of()
    rows = rows.filter(agent_id=thread.agent_id, user_id=thread.user_id).exclude(slot="")
    rows = rows.defer("embedding").order_by("-updated_at", "memory_id")
    rows = rows[:MAX_KNOWN_FACTS] if slots is None else rows.filter(slot__in=slots)
    return [
        Known(
            # The same in each prompt: a preview can be applied later.
            label=f"k{row.memory_id.hex[:8]}",
            id=row.memory_id,
            subject=row.subject,
            slot=row.slot,
            is_multi_valued=row.is_multi_valued,
            value=row.value,
            fact=row.content,
            valid_from=row.valid_from,
        )
        for row in rows
    ]


def _end(run: ExtractionRun, state: RunState, *, error: str = "") -> None:
    run.state, run.error, run.ended_at = state, error, timezone.now()
    run.save(
        update_fields=[
            "state", "error", "ended_at", "output", "response_format", "prompt_tokens",
            "completion_tokens", "cost", "result", "candidates",
        ]
    )  # fmt: skip


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
    """Ask for the facts of messages, and return a run that shows what it would change.

    Nothing but the run is written. The language model is asked meanwhile: do not call it in a
    transaction.

    Args:
        messages: of one conversation, oldest first, with their tenant's current agent.
        requested_by: the author of the request, such as "person:7".
        model: the language model; None: the agent's.
        replay_of: the run of which this one repeats the input.

    Raises:
        ExtractionFailed: there are no messages, or the answer has no list of facts.
        ExtractionLimitReached: the agent has not enough tokens left today.
        Busy: the tenant has as many requests at the language model as it may.
        LLMError: there is no answer.
    """
    if not messages:
        raise ExtractionFailed("There are no messages to extract facts from.")
    thread = Thread.of(messages[0])
    agent = Agent.objects.get(pk=thread.agent_id)
    if model is not None:
        agent.extraction_model = model
    batch = Batch(agent, thread, _up_to_limit(list(messages)), _known(thread))
    check_limit(batch)
    run = _create_run(
        batch, requested_by=requested_by, replay_of=replay_of.pk if replay_of else None
    )
    try:
        with _share():
            answer = _read(_ask(batch, run))
        with transaction.atomic():
            _record(batch, run, answer)
            transaction.set_rollback(True)
    except Exception as error:
        _end(run, RunState.FAILED, error=str(error))
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
    _end(run, RunState.PREVIEW)
    return run


@contextmanager
def _share() -> Iterator[None]:
    tenant_id = required_tenant_id()
    if not shares.enter(tenant_id):
        raise Busy("Too many requests wait for the language model. Try again later.")
    try:
        yield
    finally:
        shares.leave(tenant_id)


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
    batch = Batch(Agent.objects.get(pk=run.agent_id), thread, messages, _known(thread))
    answer = _read(run.output)
    with locked_windows([thread]):
        run = get_run(run_id, RunState.PREVIEW, is_locked=True)
        _require_messages(batch)
        _record(batch, run, answer)
        _end(run, RunState.APPLIED)
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
