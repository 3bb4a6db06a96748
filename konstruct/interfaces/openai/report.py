"""The report of an answer: the parameters of the request that are ignored or adjusted."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings

from konstruct.api.auth.permissions import Caller
from konstruct.api.http.problems import Refusal
from konstruct.interfaces.openai.errors import refused
from konstruct.interfaces.openai.requests import (
    SAMPLING,
    THREAD_PARAMETERS,
    USER_PARAMETERS,
    ChatRequest,
    wants_usage,
)
from konstruct.llm.completions import storable
from konstruct.orchestrator.builder import (
    LENGTH_LIMITS,
    joined_instructions,
    limited_options,
    max_instruction_tokens,
)
from konstruct.orchestrator.models import Agent
from memory.context import tokens

# Parameters that are always followed, or refused where they cannot be.
_FOLLOWED: Final = frozenset(
    {
        *("model", "messages", "stream", "metadata", "response_format"),
        *("tools", "tool_choice", "parallel_tool_calls"),
        *("n", "logprobs", "top_logprobs", "audio", "modalities"),
        *USER_PARAMETERS,
        *THREAD_PARAMETERS,
    }
)
_NO_MODEL: Final = "No language model is configured here: the built-in responder quotes memories."
_OTHERS: Final = {
    "store": "Messages and replies are always stored, until they are erased.",
    "reasoning_effort": "The agent's model tier decides how much its language model thinks.",
}
_UNKNOWN: Final = "This parameter is not supported here."
# Names of unsupported parameters in one answer; further ones are counted.
MAX_NAMED: Final = 20
MAX_NAME_CHARACTERS: Final = 64
# A longer text is refused before its tokens are counted. Texts have about 4 characters a token.
MAX_CHARACTERS_PER_TOKEN: Final = 16
_HEADER_NAME: Final = re.compile(r"[\w.*-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Report:
    """The parts of a request that the answer does not follow as they were sent."""

    ignored: Mapping[str, str]
    """Parameters that have no effect, each with the reason."""
    adjusted: Mapping[str, tuple[Any, str]]
    """Parameters that have another value, each with that and the reason."""
    is_repeated: bool = False
    """The answer is that of an earlier request, with its instructions and parameters."""

    def document(self) -> dict[str, Any]:
        """Return the value of the field `konstruct`; {} if the request is followed."""
        ignored = [{"param": name, "reason": why} for name, why in self.ignored.items()]
        adjusted = [
            {"param": name, "value": value, "reason": why}
            for name, (value, why) in self.adjusted.items()
        ]
        parts = {"ignored": ignored, "adjusted": adjusted, "repeated": self.is_repeated}
        return {name: value for name, value in parts.items() if value}

    def headers(self) -> dict[str, str]:
        """Return the names of the parameters as headers."""
        named = {"X-Konstruct-Ignored": self.ignored, "X-Konstruct-Adjusted": self.adjusted}
        return {
            header: ", ".join(filter(_HEADER_NAME.fullmatch, names))
            for header, names in named.items()
            if names
        }


def report_of(chat: ChatRequest, agent: Agent, caller: Caller) -> Report:
    """Return the parts of the request that the agent does not follow as they were sent."""
    ignored, adjusted = {}, {}
    reason = _why_no_instructions(agent, caller)
    if reason and joined_instructions(chat.instructions):
        ignored["messages"] = f"System and developer messages are not followed: {reason}"
    if not settings.LLM_POOL_URL:
        ignored |= {name: _NO_MODEL for name in SAMPLING if name in chat.options}
    else:
        limited = limited_options(agent, chat.options)
        why = f"An answer of this agent has at most {agent.max_completion_tokens} tokens."
        adjusted = {
            name: (limited[name], why)
            for name in LENGTH_LIMITS
            if name in chat.options and limited[name] != chat.options[name]
        }
    unknown = [storable(name)[:MAX_NAME_CHARACTERS] for name in _unsupported(chat.body)]
    ignored |= {name: _OTHERS.get(name, _UNKNOWN) for name in unknown[:MAX_NAMED]}
    if len(unknown) > MAX_NAMED:
        ignored["*"] = f"{len(unknown) - MAX_NAMED} more parameters are not supported here."
    return Report(ignored, adjusted)


def instructions_of(chat: ChatRequest, agent: Agent, caller: Caller) -> tuple[str, ...]:
    """Return the instructions of a request that its agent is to follow.

    Raises Refusal if they are longer than the agent's model tier allows.
    """
    text = joined_instructions(chat.instructions)
    if not text or _why_no_instructions(agent, caller):
        return ()
    limit = max_instruction_tokens(agent.model_tier)
    is_long = len(text) > MAX_CHARACTERS_PER_TOKEN * limit
    count = None if is_long else tokens.count_up_to(text, limit)
    if count is None or count > limit:
        size = f"{len(text):,} characters" if count is None else f"{count:,} tokens"
        why = (
            f"System and developer messages have {size} together. This agent takes at most "
            f"{limit:,} tokens of them, by its model tier ({agent.model_tier}). Shorten them, or "
            "choose another tier for the agent."
        )
        raise Refusal(refused("messages", why, code="instructions_too_long"))
    return tuple(text for text in chat.instructions if text.strip())


def _why_no_instructions(agent: Agent, caller: Caller) -> str:
    """Why a request's instructions are not followed; "" if they are."""
    if caller.is_bound:
        return "the API key is bound to a user or an agent."
    if not agent.accepts_client_instructions:
        return "this agent accepts no instructions of applications."
    return "" if settings.LLM_POOL_URL else _NO_MODEL


def _unsupported(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the parameters that have no effect here, in the order of the request."""
    for name, value in body.items():
        if name == "stream_options":
            yield from _unsupported_options(body)
        elif value is not None and name not in _FOLLOWED and name not in SAMPLING:
            yield name
    metadata = body.get("metadata")
    for name in metadata if isinstance(metadata, Mapping) else ():
        if f"metadata.{name}" not in _FOLLOWED:
            yield f"metadata.{name}"


def _unsupported_options(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options of `stream_options` without an effect: all of them without a stream."""
    options = body["stream_options"]
    if not isinstance(options, Mapping):
        if options is not None:
            yield "stream_options"
        return
    for name, value in options.items():
        if value and not (name == "include_usage" and wants_usage(body)):
            yield f"stream_options.{name}"
