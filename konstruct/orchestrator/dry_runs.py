"""Dry runs: the reply that a channel would send to a first message, without storing anything.

Saved questions are asked again, by a dry run, after each change of their agent. A language model is
tested by requests whose answers are not stored.

Rules for people and other agents, the prompt and the tools are those of the pipeline. Tools,
handovers and escalations are described and not carried out. The meter counts the calls of the
language model.
"""

import json
import logging
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from django.conf import settings
from django.db.models import Max
from django.utils import timezone

from konstruct.llm.completions import Completion, CompletionRequest, LLMError, OnText
from konstruct.orchestrator import agents, builder, models, runner, tool_calls, tool_catalog, usage
from konstruct.orchestrator.exceptions import TooManyQuestions
from konstruct.orchestrator.extraction.fact_requests import request_slot
from konstruct.orchestrator.handoff import escalations, handovers
from konstruct.orchestrator.messages import KonstructMessage
from konstruct.orchestrator.pipeline import respond
from memory.context.prompt import Prompt
from tenants import context, exceptions, jobs, transaction
from tenants.audit.people import hold_people
from tenants.limits.quotas import QuotaExceeded

logger = logging.getLogger(__name__)

PURPOSE: Final = "dry run"
PURPOSE_OF_QUESTIONS: Final = "saved questions"
CHANNEL: Final = "dry-run"
# Each run sends at least one request to the language model for each question.
MAX_QUESTIONS: Final = 20
# Answers of older versions are deleted.
MAX_VERSIONS: Final = 20


@dataclass(slots=True)
class DryRun:
    """The result of a dry run."""

    agent: models.Agent
    """The agent that answers: after a handover, another one than was asked."""
    asked_at: datetime
    answered_at: datetime | None = None
    reply: str = ""
    """Empty if the channel would send no reply, or none yet."""
    steps: list[str] = field(default_factory=list)
    """Sentences about the decisions and their reasons, for people."""
    problem: str = ""
    """Why there is no reply: the error of the language model, or the quota."""
    prompt: Prompt | None = None
    """None if no language model was asked."""
    usage: Mapping[str, int] | None = None
    """Numbers of tokens, as the language model reports them."""

    @property
    def trace(self) -> dict[str, Any] | None:
        """The recall and the prompt as a recall event stores them."""
        return None if self.prompt is None else self.prompt.trace()

    def escalate(self, by: str, reason: str) -> str:
        """Describe an escalation to a person, and return its notice to the user."""
        self.steps.append(f"It would be handed to a person ({by}). {reason}")
        return escalations.NOTICE


def dry_run(
    agent: models.Agent,
    content: str,
    *,
    user_id: str | None,
    without: Collection[UUID] = (),
    purpose: str = PURPOSE,
) -> DryRun:
    """Return the reply that a channel would send to the first message of a new thread.

    Do not call it in a transaction: it waits for the language model, at most LLM_TIMEOUT seconds
    for each agent that the message is handed to.

    Args:
        agent: the agent that the message is sent to. It may have values that are not saved.
        content: the message.
        user_id: the person whose memory is used; None: a person without memories.
        without: ids of stored messages to leave out of the prompt.
        purpose: of the calls of the language model, for the meter.

    Raises:
        Busy: the tenant has the maximum number of requests to the language model.
    """
    message = KonstructMessage(
        id=uuid4(),
        tenant_id=context.required_tenant_id(),
        agent_id=agent.pk,
        user_id=user_id or f"nobody-{uuid4()}",
        thread_id=f"{CHANNEL}-{uuid4()}",
        channel=CHANNEL,
        content=content,
        created_at=timezone.now(),
    )
    run = DryRun(agent, asked_at=timezone.now())
    try:
        with request_slot():
            usage.require_room(usage.MODEL_CALL_QUOTAS)
            run.reply = _respond(run, message, without, purpose)
    except (LLMError, QuotaExceeded) as error:
        logger.warning("A dry run of agent %s failed: %s", agent.pk, exceptions.detail_of(error))
        run.problem = str(error)
    run.answered_at = timezone.now()
    return run


def _respond(
    run: DryRun, message: KonstructMessage, without: Collection[UUID], purpose: str
) -> str:
    """Return the reply, by the agent that the message is sent to or handed over to."""
    agents_so_far = {run.agent.id}
    # Ends: an agent gets the message once.
    while True:
        agent = run.agent
        if (escalation := escalations.reason_to_escalate(message.content, agent)) is not None:
            opened_by, reason = escalation
            is_by_user = opened_by == escalations.OpenedBy.USER
            return run.escalate("the user asks for one" if is_by_user else "a rule", reason)
        handover = handovers.match_handover_rule(message.content, agent)
        if handover is None:
            reply = _ask(run, message, without, purpose)
            if isinstance(reply, str):
                return reply
            handover = reply
        to_agent, reason = handover
        next_agent, refusal = handovers.next_agent(to_agent, agents_so_far)
        if next_agent is None:
            return run.escalate("a rule", handovers.refusal_reason(agent, refusal, reason))
        run.steps.append(f"{agent.name} would hand the conversation to {next_agent.name}. {reason}")
        agents_so_far.add(next_agent.id)
        run.agent = next_agent


def _ask(
    run: DryRun, message: KonstructMessage, without: Collection[UUID], purpose: str
) -> str | tuple[UUID, str]:
    """Ask the language model of the agent.

    Returns:
        The reply, or the agent to hand the message over to and the reason.
    """
    agent = run.agent
    window = handovers.with_window(message, agent, ())
    left_out = set(map(str, without))
    turns = [turn for turn in window.turns if turn.get("message_id") not in left_out]
    session = replace(window, turns=turns)
    meter = {"purpose": purpose, "agent_id": message.agent_id}
    gathered = respond.gather_context(message, agent, session, exclude=without)
    gathered = runner.rerank(agent, gathered, meter)
    run.prompt = respond.build_prompt(agent, gathered, session)
    tools = [
        *tool_catalog.tool_descriptions(agent.tools),
        *handovers.handover_tools(agent, can_hand_back=False),
    ]
    asked = builder.AgentForReply(agent, tools=tools, meter=meter)
    completion = runner.complete(message, asked, run.prompt.messages)
    run.usage = completion.usage
    if completion.finish_reason == "length":
        run.steps.append("The answer was cut at the limit of tokens.")
    calls = tool_calls.validated_calls(message, agent, completion, round_number=0)
    targets = handovers.handover_targets(agent) if calls else {}
    for call in calls:
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        target = targets.get(str(arguments.get("agent")))
        if call.name == handovers.HAND_TO_AGENT and target is not None:
            return target.id, str(arguments.get("reason") or "Its language model asks for it.")
        description = f"{call.name} with {json.dumps(call.arguments, ensure_ascii=False)}"
        outcome = call.question or call.result
        run.steps.append(f"The language model asks for {description}. It is not run: {outcome}")
    if completion.text and agent.id != message.agent_id:
        return f"{respond.INTRODUCTION.format(name=agent.name)}\n\n{completion.text}"
    return completion.text


# --- Saved questions ------------------------------------------------------------------------------


def save_question(
    agent: models.Agent, *, content: str, user_id: str | None = None
) -> models.SavedQuestion:
    """Save a question to an agent.

    Args:
        agent: the agent, of the current tenant.
        content: the message.
        user_id: the person who asks; None: a person without memories.

    Raises:
        TooManyQuestions: the agent has MAX_QUESTIONS.
        QuotaExceeded: the tenant's storage is full.
    """
    usage.require_storage()
    with transaction.atomic():
        hold_people([user_id], agent_ids=[agent.pk])
        models.Agent.objects.select_for_update().get(pk=agent.pk)
        if models.SavedQuestion.objects.filter(agent_id=agent.pk).count() >= MAX_QUESTIONS:
            raise TooManyQuestions(
                f"{agent.name} has {MAX_QUESTIONS} saved questions. Delete one first."
            )
        return models.SavedQuestion.objects.create(
            agent_id=agent.pk, content=content, user_id=user_id
        )


def enqueue_questions(agent_id: UUID) -> None:
    """Enqueue a job that asks an agent its saved questions."""
    agents.QUESTIONS.enqueue_again(agent_id)


def ask_questions(job: UUID | jobs.Lease) -> None:
    """Ask an agent its saved questions, and store the answers for its current version.

    An answer replaces the earlier one of the same version. A killed worker may leave some answers.

    Args:
        job: the job of the agent, or its lease.
    """
    agent_id = jobs.key_of(job)

    def ask(lease: jobs.Lease) -> None:
        agent = models.Agent.objects.get(pk=agent_id)
        questions = models.SavedQuestion.objects.filter(agent_id=agent_id).order_by("created_at")
        version = version_of(agent_id)
        for question in questions[:MAX_QUESTIONS]:
            _answer(question, agent, version, lease)
        with lease.transaction():
            # It was requeued because the agent or its questions have changed.
            if not agents.QUESTIONS.finish(agent_id, unless_requeued=True):
                agents.QUESTIONS.requeue(agent_id)

    agents.QUESTIONS.run(job, ask)


def version_of(agent_id: UUID) -> int:
    """Return the number of the agent's newest version; 0 before its first one."""
    versions = models.AgentVersion.objects.filter(agent_id=agent_id)
    return versions.aggregate(newest=Max("number"))["newest"] or 0


def _answer(
    question: models.SavedQuestion, agent: models.Agent, version: int, lease: jobs.Lease
) -> None:
    run = dry_run(agent, question.content, user_id=question.user_id, purpose=PURPOSE_OF_QUESTIONS)
    message_ids, source_count = _sources(run)
    with lease.transaction():
        # The question may have been deleted, or its person erased.
        if not models.SavedQuestion.objects.select_for_update().filter(pk=question.pk).exists():
            return
        answers = models.QuestionAnswer.objects.filter(question=question)
        answers.filter(version=version).delete()
        answers.filter(version__lte=version - MAX_VERSIONS).delete()
        models.QuestionAnswer.objects.create(
            question=question,
            agent_id=question.agent_id,
            user_id=question.user_id,
            version=version,
            content=run.reply,
            steps=run.steps,
            problem=run.problem,
            message_ids=message_ids,
            source_count=source_count,
        )


def _sources(run: DryRun) -> tuple[list[UUID], int]:
    """Return the messages that the prompt quotes, and the number of recalled sources."""
    if run.prompt is None:
        return [], 0
    gathered = run.prompt.gathered
    recalled_ids = {hit.message_id for hit in gathered.recalled.hits}
    of_facts = {UUID(str(pk)) for fact in gathered.facts for pk in fact.message_ids}
    turn_ids = (turn.get("message_id") for turn in gathered.session_messages)
    message_ids = recalled_ids | of_facts | {UUID(pk) for pk in turn_ids if pk}
    return sorted(message_ids), len(recalled_ids) + len(gathered.facts)


# --- Tests of language models ---------------------------------------------------------------------

_TOOL: Final = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Returns the weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
_FORM: Final = {
    "type": "json_schema",
    "json_schema": {
        "name": "sum",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"result": {"type": "integer"}},
            "required": ["result"],
            "additionalProperties": False,
        },
    },
}


@dataclass
class LanguageModelTest:
    """What a language model can do, and how long it takes."""

    problem: str = ""
    """Why it did not answer at all; "": it answered."""
    first_text_seconds: float | None = None
    """Until the first text; None: it does not stream."""
    seconds: float | None = None
    """Until the whole answer; None: there was none."""
    streams: bool = False
    calls_tools: bool = False
    follows_schema: bool = False


def measure_language_model(model: models.LanguageModel) -> LanguageModelTest:
    """Ask a language model for a text, a tool call and an answer in a JSON schema; a reranker for
    the scores of two texts.

    The calls are metered. Do not call it in a transaction: it takes up to the model's timeout.

    Raises:
        Busy: the tenant has the maximum number of requests to language models.
        QuotaExceeded: the tenant has no tokens left.
    """
    usage.require_room(usage.MODEL_CALL_QUOTAS)
    test = LanguageModelTest()
    begun_at = time.monotonic()
    deadline = begun_at + min(model.timeout_seconds or settings.LLM_TIMEOUT, settings.LLM_TIMEOUT)

    def ask(*texts: str, on_text: OnText | None = None, **more: Any) -> Completion:
        messages = [{"role": "user", "content": text} for text in texts]
        request = CompletionRequest(messages, model="", tier=models.ModelTier.FAST, **more)
        timeout = max(deadline - time.monotonic(), runner.MIN_SECONDS)
        meter = {"purpose": "test"}
        return runner.call(model, request, meter, on_text, timeout=timeout, max_attempts=1)

    def note_first_text(piece: str) -> None:
        test.first_text_seconds = test.first_text_seconds or time.monotonic() - begun_at

    with request_slot():
        try:
            if model.kind == models.ModelKind.RERANKER:
                ask("Where does Maria live?", "Maria lives in Porto.", "I like tea.")
            else:
                ask("Answer with the word OK.", on_text=note_first_text)
        except LLMError as error:
            test.problem = str(error)
            return test
        test.seconds = time.monotonic() - begun_at
        if model.kind == models.ModelKind.RERANKER:
            return test
        test.streams = test.first_text_seconds is not None
        with suppress(LLMError):
            calls = ask("Call get_weather for Rome.", tools=[_TOOL]).requested
            test.calls_tools = any(call.name == "get_weather" for call in calls)
        with suppress(LLMError, ValueError):
            answer = json.loads(ask("Add two and two.", options={"response_format": _FORM}).text)
            test.follows_schema = isinstance(answer, dict) and type(answer.get("result")) is int
    return test
