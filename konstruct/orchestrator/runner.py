"""Runs an agent on a message: every completion of the product goes through `run_agent`.

`complete` calls `run_agent` as an attribute of this module, so a program that replaces or wraps it
changes the replies of all agents.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from django.conf import settings

from konstruct.llm.client import language_model
from konstruct.llm.completions import (
    Completion,
    CompletionRequest,
    host_of,
    make_storable,
    total_usage,
)
from konstruct.llm.exceptions import LLMError, LLMReplyInvalid
from konstruct.orchestrator import builder, metering
from konstruct.orchestrator.builder import AgentForReply, limited_options
from konstruct.orchestrator.models import CallOutcome, ModelCall
from tenants.context import current_tenant_id
from tenants.exceptions import reason_of


def run_agent(msg: Any, agent: Any, messages: Sequence[Mapping[str, Any]] | None = None) -> str:
    """Return the agent's answer to the message, by the language model of the settings.

    The meter records the call, except calls of the built-in responder.

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
    asked = AgentForReply.of(agent)
    if messages is None:
        messages = builder.build_messages_with_memory(agent, msg.content, [], [])
    request = CompletionRequest(
        messages,
        model=agent.model,
        tier=agent.model_tier,
        tools=asked.tools,
        may_call=asked.may_call,
        options=limited_options(agent, asked.options),
    )
    if settings.LLM_POOL_URL and current_tenant_id() is not None:
        with _record_call(
            messages,
            model=agent.model or settings.LLM_MODEL or agent.model_tier,
            endpoint=host_of(settings.LLM_POOL_URL),
            **{"purpose": metering.REPLY, **asked.meter},
        ) as call:
            completion = language_model(asked.timeout).complete(request, asked.on_text)
            call.count(messages, completion)
    else:
        completion = language_model(asked.timeout).complete(request, asked.on_text)
    if asked.on_completion is not None:
        asked.on_completion(completion)
    return completion.text


@contextmanager
def _record_call(messages: Sequence[Mapping[str, Any]], **fields: Any) -> Iterator[metering.Call]:
    """Record a call of a language model in the block.

    Call it outside of a transaction, so that a rollback does not remove the record. The block sets
    the tokens of the answer with `Call.count`. If it raises, the call has failed.

    Args:
        messages: the prompt.
        fields: the fields of `ModelCall` that are known before the call.
    """
    call_id = ModelCall.objects.create(**fields).pk
    call = metering.Call()
    outcome = CallOutcome.FAILED
    try:
        yield call
        outcome = CallOutcome.DONE
    except Exception as error:
        call.error = reason_of(error)
        if isinstance(error, LLMError):
            call.count_failure(messages, error)
        raise
    finally:
        metering.finish_call(call_id, outcome, call, cost=call.cost)


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
    asked = AgentForReply.of(agent)
    completions: list[Completion] = []
    is_replaced = run_agent is not _run_agent
    on_text = None if is_replaced else asked.on_text
    returned = run_agent(
        msg, replace(asked, on_text=on_text, on_completion=completions.append), messages
    )
    text = make_storable(returned).strip() if isinstance(returned, str) else ""
    same_text = [completion for completion in completions if completion.text == text]
    fitting = same_text or completions
    last = fitting[-1] if fitting else None
    requested = last.requested if last else ()
    if not text and not requested:
        raise LLMReplyInvalid(
            "The agent gave no text.",
            detail=f"run_agent returned {type(returned).__name__}, without a text.",
        )
    completion = Completion(
        text,
        requested,
        total_usage([completion.usage for completion in completions]),
        last.finish_reason if last else "stop",
    )
    if is_replaced and text and asked.on_text is not None:
        asked.on_text(text)
    return completion
