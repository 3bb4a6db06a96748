"""Requests for facts to a language model: the batch of messages, its limits, and the answer."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid4

from django.conf import settings

from konstruct.llm.completions import Completion, split_credentials
from konstruct.llm.exceptions import LLMError, LLMRefused
from konstruct.orchestrator import metering, runner, usage
from konstruct.orchestrator.builder import AgentForReply
from konstruct.orchestrator.exceptions import Busy, ExtractionFailed, ExtractionLimitReached
from konstruct.orchestrator.extraction import prompt
from konstruct.orchestrator.extraction.candidates import (
    AnswerInvalid,
    Candidate,
    KnownFact,
    RefusedCandidate,
    Source,
    complete_facts,
    parse,
)
from konstruct.orchestrator.messages import KonstructMessage, Thread
from konstruct.orchestrator.models import Agent, ExtractionRun, RunState
from memory.embedding.embedder import embed
from memory.models import MemoryEntry, Message
from tenants.context import required_tenant_id
from tenants.limits.fair_shares import FairShares
from tenants.limits.quotas import QuotaExceeded

PURPOSE: Final = "extraction"
# The maximum number of known facts in the prompt. The facts that changed last are taken.
MAX_KNOWN_FACTS: Final = 100
# A batch ends before the message with which its texts would be longer than this.
MAX_BATCH_CHARACTERS: Final = 60_000
# HTTP statuses with which servers refuse an unknown response_format.
UNKNOWN_FORMAT_STATUSES: Final = frozenset({400, 415, 422, 501})
# In the result of a run: the answer was cut at its limit of tokens.
CUT: Final = "cut"
NO_MODEL: Final = "No facts are extracted: no language model is configured."

# The slots of parallel requests for which clients wait, each in a thread of the web process. A
# quarter is reserved for tenants without a request.
_SLOTS: Final = max(1, settings.WEB_THREADS // 2)
request_slots = FairShares(_SLOTS, _SLOTS // 4)
SLOT_TIMEOUT_SECONDS: Final = 30.0
# The response_format that worked last, by endpoint and model.
supported_formats: dict[tuple[str, str], str] = {}


@dataclass(frozen=True, slots=True)
class Batch:
    """The messages of one run, with the facts that its prompt names."""

    agent: Agent
    thread: Thread
    messages: Sequence[Message]
    known: Sequence[KnownFact]

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
            )
            for position, message in enumerate(self.messages, start=1)
        ]

    @property
    def prompt(self) -> list[dict[str, str]]:
        """The messages of the request."""
        return prompt.prompt(self.sources, self.known)


def truncate_batch(messages: list[Message]) -> list[Message]:
    """Return the first messages with at most MAX_BATCH_CHARACTERS together, but at least one."""
    characters = 0
    for index, message in enumerate(messages):
        characters += len(message.content)
        if index and characters > MAX_BATCH_CHARACTERS:
            return messages[:index]
    return messages


def require_model(batch: Batch) -> None:
    """Check that there is a language model, and that tokens and money suffice for a request.

    Raises:
        ExtractionFailed: no language model is configured.
        ExtractionLimitReached: the request would exceed a limit of the agent or the tenant.
    """
    if not settings.LLM_POOL_URL:
        raise ExtractionFailed(NO_MODEL)
    try:
        usage.require_room(usage.MODEL_CALL_QUOTAS)
    except QuotaExceeded as error:
        raise ExtractionLimitReached(str(error)) from error
    limit = batch.agent.extraction_max_tokens_per_day
    if limit is None:
        return
    used = metering.tokens_today(batch.agent.id, PURPOSE)
    needed = metering.estimated_tokens(batch.prompt)
    if used + needed > limit:
        raise ExtractionLimitReached(
            f"The agent has used {used:,} of {limit:,} tokens for facts today (UTC), and the next"
            f" request needs about {needed:,}. It continues tomorrow."
        )


def build_run(batch: Batch, **values: Any) -> ExtractionRun:
    """Return an unsaved run for a batch."""
    agent, (url, _) = batch.agent, split_credentials(settings.LLM_POOL_URL)
    return ExtractionRun(
        tenant_id=required_tenant_id(),
        **batch.thread.as_filter,
        message_ids=[message.id for message in batch.messages],
        model=agent.extraction_model or agent.model or settings.LLM_MODEL or agent.model_tier,
        endpoint=url,
        prompt_digest=prompt.PROMPT_DIGEST,
        **values,
    )


def request_facts(batch: Batch, run: ExtractionRun, timeout: float | None = None) -> str:
    """Return the answer of the language model; of a cut one, the complete facts.

    The answer, its format and its tokens are set on the run, which is not saved. The result of a
    cut one has CUT.

    Args:
        batch: the messages.
        run: the run.
        timeout: seconds for each response_format that is tried; None: LLM_TIMEOUT.

    Raises:
        LLMError: there is no answer.
        ExtractionFailed: the answer was withheld by a content filter.
    """
    first = prompt.FORMATS.index(supported_format(run.endpoint, run.model))
    for response_format in prompt.FORMATS[first:]:
        run.response_format = response_format
        try:
            completion = _request(batch, run, timeout)
            break
        except LLMRefused as error:
            is_last = response_format == prompt.FORMATS[-1]
            if is_last or error.status not in UNKNOWN_FORMAT_STATUSES:
                raise
    supported_formats[run.endpoint, run.model] = run.response_format
    run.output = completion.text
    if completion.finish_reason == "length":
        run.output, run.result = complete_facts(completion.text), {CUT: True}
    if completion.finish_reason == "content_filter":
        raise ExtractionFailed("The content filter of the language model withheld its answer.")
    return run.output


def supported_format(endpoint: str, model: str) -> str:
    """Return the response_format that worked last; for a new model, the first of FORMATS."""
    if (endpoint, model) not in supported_formats:
        runs = ExtractionRun.objects.filter(endpoint=endpoint, model=model).exclude(
            state__in=(RunState.RUNNING, RunState.FAILED)
        )
        last = runs.order_by("-created_at").values_list("response_format", flat=True).first()
        supported_formats[endpoint, model] = last or prompt.FORMATS[0]
    return supported_formats[endpoint, model]


def _request(batch: Batch, run: ExtractionRun, timeout: float | None) -> Completion:
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
        **batch.thread.as_filter,  # type: ignore[arg-type]
    )
    is_saved = not batch.agent._state.adding
    asked = AgentForReply(
        agent,
        options=prompt.options(run.response_format, batch.sources, batch.known),
        timeout=timeout,
        meter={"purpose": PURPOSE, "agent_id": batch.agent.id if is_saved else None},
    )
    call = metering.Call()
    try:
        completion = runner.complete(message, asked, messages)
        call.count(messages, completion)
    except LLMError as error:
        call.count_failure(messages, error)
        raise
    finally:
        run.prompt_tokens += call.prompt_tokens
        run.completion_tokens += call.completion_tokens
        run.cost += call.cost
    return completion


@dataclass(frozen=True, slots=True)
class Answer:
    """The candidates of an answer, with the embeddings of their facts."""

    candidates: Sequence[Candidate]
    malformed: Sequence[RefusedCandidate]
    embeddings: Mapping[str, list[float]]


def parse_facts(output: str) -> Answer:
    """Parse an answer, and compute the embeddings of its facts. Call it outside of a transaction.

    Raises:
        ExtractionFailed: the answer has no list of facts.
    """
    try:
        candidates, malformed = parse(output)
    except AnswerInvalid as error:
        raise ExtractionFailed(f"The language model gave no list of facts: {error}.") from error
    texts = list(dict.fromkeys(candidate.fact for candidate in candidates))
    return Answer(candidates, malformed, dict(zip(texts, embed(texts), strict=True)))


def known_facts(
    agent_id: UUID | None, user_id: str, slots: set[str] | None = None
) -> list[KnownFact]:
    """Return active facts of the agent and the user that have a slot, latest change last.

    Args:
        agent_id: the agent; None: facts of all agents.
        user_id: the user.
        slots: only facts of these slots, all of them; None: of all slots, up to MAX_KNOWN_FACTS.
    """
    rows = MemoryEntry.objects.of_tenant(required_tenant_id()).as_of()
    rows = rows.filter(agent_id=agent_id, user_id=user_id).exclude(slot="")
    rows = rows.defer("embedding").order_by("-updated_at", "memory_id")
    rows = rows[:MAX_KNOWN_FACTS] if slots is None else rows.filter(slot__in=slots)
    return [
        KnownFact(
            # Equal in all prompts: the answer of a preview names it when it is applied later.
            label=f"k{row.memory_id.hex[:8]}",
            id=row.memory_id,
            subject=row.subject,
            slot=row.slot,
            is_multi_valued=row.is_multi_valued,
            value=row.value,
            fact=row.content,
            valid_from=row.valid_from,
        )
        for row in reversed(rows)
    ]


@contextmanager
def request_slot() -> Iterator[None]:
    """Hold one of the tenant's slots for requests during the block.

    Raises Busy if none gets free within SLOT_TIMEOUT_SECONDS.
    """
    tenant_id = required_tenant_id()
    if not request_slots.enter(tenant_id, seconds=SLOT_TIMEOUT_SECONDS):
        raise Busy(
            "Too many requests wait for the language model: no slot was free for"
            f" {SLOT_TIMEOUT_SECONDS:g} seconds, and nothing was stored. Send the request again"
            " later."
        )
    try:
        yield
    finally:
        request_slots.leave(tenant_id)
