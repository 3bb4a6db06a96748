"""Runs an agent on a message: every completion of the product goes through `run_agent`.

`complete` calls `run_agent` as an attribute of this module, so a program that replaces or wraps it
changes the replies of all agents.

The meter: each call is recorded before it is sent, and its outcome afterwards, with one statement
each. If the process is killed in between, the outcome is unknown. Prices are those of
the language model at the time of the call.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from konstruct.llm import completions
from konstruct.llm.client import language_model
from konstruct.llm.completions import Completion, CompletionRequest, LLMError, OnText
from konstruct.orchestrator import builder, language_models, models, usage
from memory.context import prompt, tokens
from tenants import context
from tenants.exceptions import detail_of, reason_of

logger = logging.getLogger(__name__)

REPLY: Final = "reply"
# With less time left, no further language model is called.
MIN_SECONDS: Final = 1.0
# The purposes of calls.
PURPOSES: Final = (
    *(REPLY, usage.RERANKING, "extraction", "dry run", "saved questions", "asking again"),
    "test",
)
# Records the outcome of a call once, and counts the call with it.
_RECORD: Final = """
WITH finished AS (
    UPDATE orchestrator_modelcall
    SET outcome = %(outcome)s, error = %(error)s, requests = %(requests)s,
        prompt_tokens = %(prompt_tokens)s, completion_tokens = %(completion_tokens)s,
        cost = %(cost)s
    WHERE id = %(id)s AND outcome = ''
    RETURNING created_at, outcome
)
"""
_FINISHED: Final = """
SELECT (created_at AT TIME ZONE 'UTC')::date, 0, 0, 0, 1,
       (outcome = 'failed')::int, %(prompt_tokens)s, %(completion_tokens)s, %(cost)s
FROM finished
"""
_FINISH: Final = _RECORD + usage.ADD.format(rows=_FINISHED)


def run_agent(msg: Any, agent: Any, messages: Sequence[Mapping[str, Any]] | None = None) -> str:
    """Return the agent's answer to the message, by its language models (`language_models`).

    Each call is metered, except calls of the built-in responder.

    Args:
        msg: the message; its `content` is the user's text.
        agent: its `model` and `model_tier` choose the language model. An `AgentForReply` also has
            tools, options and functions that are called with the answer.
        messages: the prompt, as OpenAI's API has it. By default `build_system_prompt(agent)`
            and the message alone; the date is in the prompts of the pipeline.

    Returns:
        The text; "" if the language model calls tools without a text.

    Raises:
        LLMError: the language model gives no usable answer.
    """
    asked = builder.AgentForReply.of(agent)
    if messages is None:
        messages = builder.build_messages_with_memory(agent, msg.content, [], [])
    request = CompletionRequest(
        messages,
        model=agent.model,
        tier=agent.model_tier,
        tools=asked.tools,
        may_call=asked.may_call,
        options=builder.limited_options(agent, asked.options),
    )
    completion = _ask(request, asked)
    if asked.on_completion is not None:
        asked.on_completion(completion)
    return completion.text


def _ask(request: CompletionRequest, asked: builder.AgentForReply) -> Completion:
    """Ask the language models of the agent in turn, until one answers.

    Each has one attempt and at most half of the time that is left, but the last one has the usual
    number of attempts and all of the time. After the first text there is no further model. If all
    fail, a temporary error is raised rather than another one, so that the job is retried.

    Call it outside of a transaction, so that a rollback does not remove the records.
    """
    chain = language_models.chain_of(asked) if context.current_tenant_id() is not None else []
    if not chain:
        return language_model(asked.timeout).complete(request, asked.on_text)
    if asked.meter.get("purpose", REPLY) == REPLY:
        language_models.require_tokens_left(asked, REPLY)
    chain = language_models.without_exhausted(chain)
    seconds = min(asked.timeout or settings.LLM_TIMEOUT, settings.LLM_TIMEOUT)
    deadline, spent, has_text = time.monotonic() + seconds, Decimal(0), False

    def send(piece: str) -> None:
        nonlocal has_text
        has_text = True
        asked.on_text(piece)  # type: ignore[misc]

    on_text = asked.on_text and send
    errors: list[LLMError] = []
    for model in chain:
        is_last = model is chain[-1]
        try:
            answer = call(
                model, request, asked.meter, on_text,
                timeout=seconds if is_last else seconds / 2, max_attempts=None if is_last else 1,
            )  # fmt: skip
            return replace(answer, cost=spent + answer.cost)
        except LLMError as error:
            language_models.record_failure(model, error)
            errors.append(error)
            spent += error.cost
            seconds = deadline - time.monotonic()
            if is_last or has_text or seconds < MIN_SECONDS:
                break
            logger.warning("A language model failed: %s", detail_of(error))
    raised = next(filter(language_models.is_temporary, errors), errors[-1])
    raised.cost = spent
    raise raised


def call(
    model: models.LanguageModel,
    request: CompletionRequest,
    meter: Mapping[str, Any],
    on_text: OnText | None,
    *,
    timeout: float,
    max_attempts: int | None = None,
) -> Completion:
    """Ask one language model or reranker, and record the call. Call it in no transaction.

    Args:
        model: the model.
        request: the request. Its model is used if the language model has no name of a model.
        meter: further values of the row of `ModelCall`.
        on_text: as in `HttpLanguageModel.complete`.
        timeout: seconds, at most the model's.
        max_attempts: the maximum number of requests; None: the usual one.

    Raises:
        LLMError: it gives no usable answer.
    """
    values = language_models.described(model, request.model, request.tier)
    call_id = models.ModelCall.objects.create(**{"purpose": REPLY, **values, **meter}).pk
    answer: Completion | LLMError | None = None
    outcome, reason, price = models.CallOutcome.FAILED, "", Decimal(0)
    try:
        client = language_models.client_of(model, timeout=timeout, max_attempts=max_attempts)
        named = replace(request, model=model.model or request.model)
        if model.kind == models.ModelKind.RERANKER:
            answer = client.rerank(named)
        else:
            answer = client.complete(named, on_text)
        outcome = models.CallOutcome.DONE
    except Exception as error:
        answer, reason = error if isinstance(error, LLMError) else None, reason_of(error)
        raise
    finally:
        used = tokens_of(request.messages, answer) if answer else (0, 0)
        price = language_models.cost(used, values)
        if isinstance(answer, LLMError):
            answer.cost = price
        requests = answer.requests if answer else 1
        finish_call(call_id, outcome, used, price, error=reason, requests=requests)
    return replace(answer, model=values["model"], endpoint=values["endpoint"], cost=price)


def estimated_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of tokens of a prompt, by cl100k_base."""
    return sum(tokens.count(str(message["content"])) for message in messages)


def tokens_of(
    messages: Sequence[Mapping[str, Any]], answer: Completion | LLMError
) -> tuple[int, int]:
    """Return the tokens of a prompt and its answer, as the server reports them, or an estimate.

    Without a report, those of a refused request are 0, and only the prompt's are known of an answer
    without an end.
    """
    if answer.usage is not None:
        return answer.usage["prompt_tokens"], answer.usage["completion_tokens"]
    if isinstance(answer, Completion):
        return estimated_tokens(messages), tokens.count(answer.text)
    has_ended = not isinstance(answer, completions.LLMTimeout | completions.LLMReplyTooLong)
    return 0 if has_ended else estimated_tokens(messages), 0


def finish_call(
    call_id: UUID,
    outcome: models.CallOutcome,
    used: tuple[int, int],
    price: Decimal,
    *,
    error: str = "",
    requests: int = 1,
) -> None:
    """Record the outcome of a call and count it. Without effect if it has an outcome already.

    Args:
        call_id: the id of the row of `ModelCall`.
        outcome: DONE or FAILED.
        used: the tokens, from `tokens_of`.
        price: what they cost.
        error: the reason of a failure.
        requests: the number of requests that were sent.
    """
    values = {
        "id": call_id,
        "outcome": outcome.value,
        "error": error,
        "requests": requests,
        "prompt_tokens": used[0],
        "completion_tokens": used[1],
        "cost": price,
    }
    context.execute(_FINISH, values)


_run_agent = run_agent


def complete(msg: Any, agent: Any, messages: Sequence[Mapping[str, Any]]) -> Completion:
    """Call `run_agent`, or its replacement, with its three documented arguments.

    The returned text is the completion's. Tool calls are those of the last completion with this
    text, or else of the last one; tokens are the sum. A replacement without a language model has
    neither.

    `on_text` is called as the text comes. If `run_agent` is replaced, it is called once with the
    returned text, because a client cannot take back text that it has read.

    Args:
        msg: the message.
        agent: the agent, or an `AgentForReply` with the keywords of the request.
        messages: the prompt.

    Raises:
        LLMError: there is no usable answer, such as one without text and tool calls.
    """
    asked = builder.AgentForReply.of(agent)
    answers: list[Completion] = []
    is_replaced = run_agent is not _run_agent
    on_text = None if is_replaced else asked.on_text
    returned = run_agent(
        msg, replace(asked, on_text=on_text, on_completion=answers.append), messages
    )
    text = completions.make_storable(returned).strip() if isinstance(returned, str) else ""
    same_text = [completion for completion in answers if completion.text == text]
    last = next(reversed(same_text or answers), None)
    requested = last.requested if last else ()
    if not text and not requested:
        raise completions.LLMReplyInvalid(
            "The agent gave no text.",
            detail=f"run_agent returned {type(returned).__name__}, without a text.",
        )
    completion = Completion(
        text,
        requested,
        completions.total_usage([completion.usage for completion in answers]),
        last.finish_reason if last else "stop",
        model=last.model if last else "",
        endpoint=last.endpoint if last else "",
        cost=sum((completion.cost for completion in answers), Decimal(0)),
    )
    if is_replaced and text and asked.on_text is not None:
        asked.on_text(text)
    return completion


# --- Rerankers ------------------------------------------------------------------------------------

RERANK_SECONDS: Final = 3.0
MAX_DOCUMENTS: Final = 100
MAX_DOCUMENT_CHARACTERS: Final = 4_000


def rerank(agent: Any, parts: prompt.PromptParts, meter: Mapping[str, Any]) -> prompt.PromptParts:
    """Sort the memories of a prompt by the agent's reranker, if it has one, as `rank` does."""
    reranking = rank(agent, parts.recalled.query, parts.searched, meter)
    return parts if reranking is None else parts.rerank(reranking)


def rank(
    agent: Any, query: str, texts: Sequence[str], meter: Mapping[str, Any]
) -> prompt.Reranking | None:
    """Return the scores of the agent's reranker for texts; None without a reranker or texts.

    If it fails, the result has the reason and no scores, so that the order of the recall stays.
    Call it outside of a transaction: it waits up to RERANK_SECONDS.

    Args:
        agent: the agent.
        query: the text of the search.
        texts: the memories that it has found, best first.
        meter: further values of the row of `ModelCall`.
    """
    model = language_models.reranker_of(agent)
    if model is None or not texts:
        return None
    documents = [text[:MAX_DOCUMENT_CHARACTERS] for text in texts[:MAX_DOCUMENTS]]
    messages = [{"role": "user", "content": text} for text in (query, *documents)]
    request = CompletionRequest(messages, model="", tier="")
    begun_at, problem = time.monotonic(), ""
    scores: tuple[float, ...] = ()
    try:
        language_models.require_available(model)
        meter = {"purpose": usage.RERANKING, **meter}
        scores = call(model, request, meter, None, timeout=RERANK_SECONDS).scores
    except LLMError as error:
        language_models.record_failure(model, error)
        logger.warning("A reranker failed: %s", detail_of(error))
        problem = str(error).replace("language model", "reranker")
    milliseconds = 1000 * (time.monotonic() - begun_at)
    return prompt.Reranking(model.name, scores, model.min_score, problem, milliseconds)
