"""Chat completions and their chunks, as OpenAI's clients read them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from konstruct.api.auth.permissions import Caller
from konstruct.channels.rest.responses import event
from konstruct.interfaces import errors
from konstruct.interfaces.openai import requests
from konstruct.interfaces.openai.conversation import MAX_CHARACTERS_PER_TOKEN, History
from konstruct.llm.completions import make_storable
from konstruct.orchestrator import builder, language_models
from konstruct.orchestrator.models import Agent
from memory.context import tokens

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
        *("model", "messages", "stream", "stream_options", "metadata", "response_format"),
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
