"""The conversation that a client sends: its earlier turns, and results of its tool calls.

The earlier turns go to the language model, within the session's share of the prompt, and are not
stored in memory. A client knows a tool call by an id of ours, not by the language model's.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from konstruct.api.auth.permissions import Caller
from konstruct.interfaces import errors
from konstruct.interfaces.openai import requests
from konstruct.llm.completions import make_storable
from konstruct.orchestrator.builder import instructions_for
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import Agent, ToolCall
from memory import context, models
from memory.context.prompt import reserved_tokens
from memory.context.working import MESSAGE_OVERHEAD_TOKENS

CALL_PREFIX: Final = "call_"
# Many chat templates refuse a conversation that begins with an assistant's turn.
ASSISTANT_BEGINS: Final = "(The assistant speaks first.)"
# The characters of a history whose tokens are counted. Texts have about 4 characters a token.
MAX_CHARACTERS_PER_TOKEN: Final = 16


@dataclass(frozen=True, slots=True)
class History:
    """The turns of a client's history that fit into an agent's prompt."""

    turns: list[dict[str, str]]
    """{"role", "content"}, oldest first."""
    left_out: int = 0
    """The number of older messages that do not fit."""
    shortened: int = 0
    """The number of turns that are cut, with a mark."""


def fit_history(chat: requests.ChatRequest, agent: Agent, instructions: Sequence[str]) -> History:
    """Fit the client's history into the session's share of the agent's prompt, newest first.

    The time is linear in the length of the request.
    """
    compiler = context.WorkingContextCompiler(
        agent.model_tier, reserved_tokens=reserved_tokens(instructions_for(agent, instructions))
    )
    room = compiler.share("session_history")
    newest: list[dict[str, str]] = []
    left = room * MAX_CHARACTERS_PER_TOKEN
    for turn in reversed(chat.history[-(room // MESSAGE_OVERHEAD_TOKENS) - 1 :]):
        text, limit = turn["content"], left // 2
        if len(text) > limit:  # three quarters of what is left are its beginning
            text = text[: limit - limit // 4] + text[len(text) - limit // 4 :]
        if not text:
            break
        newest.append({**turn, "content": text})
        left -= len(text)
    if newest and newest[-1]["role"] == "assistant":
        newest.append({"role": "user", "content": ASSISTANT_BEGINS})
    turns = compiler.fitting_turns(reversed(newest))
    kept = [turn["content"] for turn in turns if turn["content"] != ASSISTANT_BEGINS]
    texts = {turn["content"] for turn in chat.history}
    return History(turns, len(chat.history) - len(kept), sum(text not in texts for text in kept))


@dataclass(frozen=True, slots=True)
class Results:
    """Results of the tool calls of one message."""

    message: models.Message
    texts: dict[UUID, str]
    rounds: int
    """The number of answers with tool calls, up to these calls."""


def shown_id(call_key: UUID) -> str:
    """Return the id by which OpenAI's clients know a tool call."""
    return f"{CALL_PREFIX}{call_key.hex}"


def call_document(call: ToolCall) -> dict[str, Any]:
    """Return a tool call as OpenAI's clients read it."""
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": call.name, "arguments": text}
    return {"id": shown_id(call.pk), "type": "function", "function": function}


def find_results(chat: requests.ChatRequest, thread: Thread, caller: Caller) -> Iterator[Results]:
    """Yield the results in a request, for each message of its thread that has such calls."""
    texts = {
        key: text
        for call_id, text in chat.results.items()
        if (key := _call_key(call_id)) is not None
    }
    if not texts:
        return
    calls = caller.rows(ToolCall.objects.filter(pk__in=texts, **thread.as_filter))
    ordered = calls.select_related("message").order_by("message_id", "round")
    for message, group in groupby(ordered, key=lambda call: call.message):
        calls_of_message = list(group)
        stored = {call.pk: make_storable(texts[call.pk]) for call in calls_of_message}
        yield Results(message, stored, calls_of_message[-1].round + 1)


def results_to_continue(chat: requests.ChatRequest, results: Iterable[Results]) -> Results:
    """Return the results with which the request continues an answer.

    Raises InvalidParameter if a call is unknown.
    """
    call_keys = {call_id: _call_key(call_id) for call_id in chat.continues}
    found = next((item for item in results if set(call_keys.values()) & item.texts.keys()), None)
    unknown = [
        call_id for call_id, key in call_keys.items() if found is None or key not in found.texts
    ]
    if found is None or unknown:
        detail = (
            f"There is no call {unknown[0][:100]!r} in this conversation. Send the ids of the "
            "tool_calls that you were given, with the same user and thread."
        )
        raise errors.InvalidParameter("messages", detail, code="tool_call_not_found")
    return found


def _call_key(call_id: str) -> UUID | None:
    try:
        return UUID(hex=call_id.removeprefix(CALL_PREFIX))
    except ValueError:
        return None
