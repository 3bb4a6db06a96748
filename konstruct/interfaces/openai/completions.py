"""What an agent gets of a client's conversation, and the completion that the client gets.

The earlier turns go to the language model, within the session's share of the prompt, and are not
stored in memory. A client knows a tool call by an id of ours, not by the language model's.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from konstruct.api.auth.authentication import Caller
from konstruct.channels.rest.responses import event
from konstruct.interfaces import errors
from konstruct.interfaces.openai import requests
from konstruct.llm.completions import make_storable
from konstruct.orchestrator import builder, language_models
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import Agent, ToolCall
from memory import context, models
from memory.context import prompt, tokens, working

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
        agent.model_tier,
        reserved_tokens=prompt.reserved_tokens(builder.instructions_for(agent, instructions)),
    )
    room = compiler.share("session_history")
    newest: list[dict[str, str]] = []
    left = room * MAX_CHARACTERS_PER_TOKEN
    for turn in reversed(chat.history[-(room // working.MESSAGE_OVERHEAD_TOKENS) - 1 :]):
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


CHUNK: Final = "chat.completion.chunk"
DONE: Final = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """An agent's answer: a text, or calls of the client's tools and the text before them."""

    text: str
    calls: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, int] | None = None
    """The number of tokens, as the language model reports it."""
    finish_reason: str = "stop"
    """The language model's reason to stop: "stop", "length" or "content_filter"."""
    answered_by: UUID | None = None
    """The agent that wrote the text, if it is a reply."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The completion of a message, and its chunks."""

    message_id: UUID
    created_at: datetime
    model: str
    report: Mapping[str, Any]
    """The parts of the request that are not followed as they were sent."""
    rounds: int = 0
    """The number of earlier answers with calls of the client's tools."""
    with_usage: bool = False
    """Whether a stream ends with the number of its tokens."""

    def document(self, answer: Answer) -> dict[str, Any]:
        """Return the completion as one object."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        if answer.calls:
            message["content"] = answer.text or None
            message["tool_calls"] = answer.calls
        message["refusal"] = None
        document = self._document("chat.completion", {"message": message}, _finish_reason(answer))
        document |= {} if answer.usage is None else {"usage": answer.usage}
        return document | self._report_field()

    def opening_event(self) -> bytes:
        """Return the first event of a stream: the role and the report.

        OpenAI's libraries keep the report of the first chunk in the completion that they build
        from a stream.
        """
        delta = {"role": "assistant", "content": ""}
        return event(self._document(CHUNK, {"delta": delta}, None) | self._report_field())

    def text_event(self, text: str) -> bytes:
        """Return an event with more of the text; nothing for an empty text."""
        return self._chunk({"content": text}) if text else b""

    def closing_events(self, answer: Answer, sent: str) -> bytes:
        """Return the last events of a stream that has sent this text so far."""
        events = self.text_event(answer.text[len(sent) :]) if answer.text.startswith(sent) else b""
        if answer.calls:
            calls = [{"index": index, **call} for index, call in enumerate(answer.calls)]
            events += self._chunk({"tool_calls": calls})
        events += event(
            self._document(CHUNK, {"delta": {}}, _finish_reason(answer)) | self._report_field()
        )
        if self.with_usage and answer.usage is not None:
            events += event({**self._common_fields(CHUNK), "choices": [], "usage": answer.usage})
        return events + DONE

    def _chunk(self, delta: dict[str, Any]) -> bytes:
        return event(self._document(CHUNK, {"delta": delta}, None))

    def _report_field(self) -> dict[str, Any]:
        """Return the report, in a field that OpenAI's API does not have and its clients keep."""
        return {"konstruct": self.report} if self.report else {}

    def _document(
        self, kind: str, choice: dict[str, Any], finish_reason: str | None
    ) -> dict[str, Any]:
        return {
            **self._common_fields(kind),
            "choices": [
                {"index": 0, **choice, "logprobs": None, "finish_reason": finish_reason},
            ],
        }

    def _common_fields(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.message_id.hex}{f'-{self.rounds}' if self.rounds else ''}",
            "object": kind,
            "created": int(self.created_at.timestamp()),
            "model": self.model,
        }


def _finish_reason(answer: Answer) -> str:
    return "tool_calls" if answer.calls else answer.finish_reason


# Parameters that are always followed, or refused where they cannot be.
_FOLLOWED: Final = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "metadata"),
        *("tools", "tool_choice", "parallel_tool_calls"),
        *("n", "logprobs", "top_logprobs", "audio", "modalities"),
        *requests.USER_PARAMETERS,
        *requests.THREAD_PARAMETERS,
        *requests.SAMPLING,
    }
)
_NO_MODEL: Final = "No language model is configured here: the built-in responder quotes memories."
# An answer names at most this many unsupported parameters, and so much of each name.
MAX_NAMED: Final = 20
MAX_NAME_CHARACTERS: Final = 64


def report_of(
    chat: requests.ChatRequest, agent: Agent, caller: Caller, history: History, *, is_repeated: bool
) -> dict[str, Any]:
    """Return the field `konstruct` of an answer: the options that the agent does not follow.

    Args:
        chat: the request.
        agent: the agent that answers.
        caller: the caller.
        history: the part of the client's history that fits into the agent's prompt.
        is_repeated: whether the answer is that of an earlier request.

    Returns:
        `ignored` has the parameters without effect, `adjusted` those with another value, each with
        the reason. {} if the request is followed.
    """
    reasons = []
    reason = _refusal_of_instructions(agent, caller)
    if reason and builder.joined_instructions(chat.instructions):
        reasons.append(f"System and developer messages are not followed: {reason}")
    if history.left_out or history.shortened:
        reasons.append(
            f"Earlier messages that are left out: {history.left_out:,}, shortened: "
            f"{history.shortened:,}. Together they are too long for the prompt of this agent."
        )
    if chat.messages_with_other_parts:
        reasons.append(
            f"Earlier messages with images, audio or files: {chat.messages_with_other_parts:,}. "
            "Only their text is sent to the language model."
        )
    ignored: dict[str, str] = {}
    limited = builder.limited_options(agent, chat.options)
    if not language_models.has_language_model(agent):
        limited = dict(chat.options)
        ignored |= {name: _NO_MODEL for name in requests.SAMPLING if name in chat.options}
    parameters = dict(chat.body)
    if isinstance(inner := chat.body.get("stream_options"), Mapping):
        parameters |= {f"stream_options.{key}": value for key, value in inner.items()}
    if requests.wants_usage(chat.body) or not parameters.get("stream_options.include_usage"):
        parameters.pop("stream_options.include_usage", None)
    sent = {name for name, value in parameters.items() if value is not None}
    unsupported = [name for name in parameters if name in sent - _FOLLOWED]
    ignored |= {
        make_storable(name)[:MAX_NAME_CHARACTERS]: "This parameter is not supported here."
        for name in unsupported[:MAX_NAMED]
    }
    limit = f"An answer of this agent has at most {agent.max_completion_tokens} tokens."
    report = {
        "ignored": [
            *({"param": "messages", "reason": reason} for reason in reasons),
            *({"param": name, "reason": reason} for name, reason in ignored.items()),
        ],
        "adjusted": [
            {"param": name, "value": limited[name], "reason": limit}
            for name in builder.LENGTH_LIMITS
            if name in chat.options and limited[name] != chat.options[name]
        ],
        "repeated": is_repeated,
    }
    return {name: value for name, value in report.items() if value}


def instructions_of(chat: requests.ChatRequest, agent: Agent, caller: Caller) -> tuple[str, ...]:
    """Return the instructions of a request that its agent is to follow.

    Raises InvalidParameter if they are longer than the agent's model tier allows.
    """
    text = builder.joined_instructions(chat.instructions)
    if not text or _refusal_of_instructions(agent, caller):
        return ()
    limit = builder.max_instruction_tokens(agent.model_tier)
    is_long = len(text) > MAX_CHARACTERS_PER_TOKEN * limit
    count = None if is_long else tokens.count_up_to(text, limit)
    if count is None or count > limit:
        size = f"{len(text):,} characters" if count is None else f"{count:,} tokens"
        detail = (
            f"System and developer messages have {size} together. This agent takes at most "
            f"{limit:,} tokens of them, by its model tier ({agent.model_tier}). Shorten them, or "
            "choose another tier for the agent."
        )
        raise errors.InvalidParameter("messages", detail, code="instructions_too_long")
    return tuple(text for text in chat.instructions if text.strip())


def _refusal_of_instructions(agent: Agent, caller: Caller) -> str:
    """Return the reason why a request's instructions are not followed; "" if they are."""
    if caller.is_bound:
        return "the API key is bound to a user or an agent."
    if not agent.accepts_client_instructions:
        return "this agent accepts no instructions of applications."
    return "" if language_models.has_language_model(agent) else _NO_MODEL
