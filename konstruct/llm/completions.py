"""What goes over the wire to a language model and comes back. Pure: no Django, no I/O."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeGuard
from urllib.parse import unquote

from konstruct.llm.exceptions import LLMRefused, LLMReplyInvalid

# Of one answer, so many calls are taken, each with so many characters of arguments.
MOST_CALLS = 8
LONGEST_ARGUMENTS = 65_536
# A report of more is none.
MOST_TOKENS = 2**31
# The reasons, by OpenAI's names, for which an answer ended before the language model finished it.
CUT_REASONS = frozenset({"length", "content_filter"})
JSON_WANTED = {"role": "system", "content": "Answer with a JSON object, and nothing else."}
TEXT_KEYS = ("content", "text", "response", "message", "output", "reply", "completion")


@dataclass(frozen=True, slots=True)
class Requested:
    """A tool that a language model asks for by its name, with arguments, whatever they are."""

    call_id: str
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer: in words, or in calls of tools."""

    text: str
    """The answer; what was said before the calls if there are any, or ""."""
    requested: tuple[Requested, ...] = ()
    usage: Mapping[str, int] | None = None
    """Tokens as the language model reports them, by OpenAI's names; None if it does not."""
    finish_reason: str = "stop"
    """Why it ended: "length" if it was cut at a limit, "content_filter", else "stop"."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """What a language model is asked, in the words of OpenAI's API."""

    messages: Sequence[Mapping[str, Any]]
    model: str
    """Its name; empty: the deployment's choice, by the tier."""
    tier: str
    tools: Sequence[Mapping[str, Any]] = ()
    may_call: bool = True
    """False for an answer in words: there were calls enough."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the request, such as `response_format` and `temperature`."""

    @property
    def takes_calls(self) -> bool:
        """Whether the answer may be calls of tools."""
        return bool(self.tools) and self.may_call


@dataclass(frozen=True)
class Endpoint:
    """One address and the API that is spoken there."""

    url: str
    api: Literal["pool", "openai"]

    def payload(
        self, request: CompletionRequest, *, default_model: str = "", stream: bool = False
    ) -> dict[str, Any]:
        """Return the request's JSON.

        An agent without a model leaves the choice to the pool, which is told the tier; OpenAI's API
        demands a model, and gateways such as LiteLLM take a tier's name as an alias. It demands
        that a message says JSON where the answer is to be some. Tools and
        options are said in the same words to both, and nothing is said of tools where there are
        none. A pool of our own words has no streams.
        """
        model, messages = request.model or default_model, list(request.messages)
        offered = dict(request.options)
        if not (stream and self.api == "openai"):
            offered.pop("stream_options", None)
        if request.tools:
            offered["tools"] = list(request.tools)
        if request.tools and not request.may_call:
            offered["tool_choice"] = "none"
        form = offered.get("response_format")
        if isinstance(form, Mapping) and form.get("type") == "json_object":
            messages.append(JSON_WANTED)
        if self.api == "openai":
            streamed = {"stream": True} if stream else {}
            return {"model": model or request.tier, "messages": messages, **offered, **streamed}
        chosen = {"model": model} if model else {}
        return {**chosen, "model_tier": request.tier, "messages": messages, **offered}


def part_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """Part `scheme://user:password@host/…` into the URL without them, and user and password."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    user_and_password, at, host = authority.rpartition("@")
    if not at:
        return url, None
    user, _, password = user_and_password.partition(":")
    return f"{scheme}{separator}{host}{slash}{path}", (unquote(user), unquote(password))


def endpoints(url: str, api: str, *, known: str | None = None) -> list[Endpoint]:
    """Return the addresses to try, in order.

    `auto` takes a URL that ends in `/v1` (or names the whole path) for OpenAI's. Any other is asked
    at `/complete` first, and at `/v1/chat/completions` if that path is unknown there. `known` is
    what an earlier answer showed.
    """
    base = url.rstrip("/")
    if base.endswith("/chat/completions"):
        openai = Endpoint(base, "openai")
    elif base.endswith("/v1"):
        openai = Endpoint(f"{base}/chat/completions", "openai")
    else:
        openai = Endpoint(f"{base}/v1/chat/completions", "openai")
    pool = Endpoint(f"{base}/complete", "pool")
    if api == "pool" or (api == "auto" and known == "pool"):
        return [pool]
    if api == "openai" or known == "openai" or base.endswith(("/v1", "/chat/completions")):
        return [openai]
    return [pool, openai]


def read_completion(data: Any, *, with_calls: bool) -> Completion:
    """Return an answer: its text, and its calls of tools if they are wanted and there are any.

    `{"tool_calls": […]}`, `{"message": {"tool_calls": […]}}` and OpenAI's
    `{"choices": [{"message": {"tool_calls": […]}}]}`. Raises LLMReplyInvalid if there is neither,
    and LLMRefused if the limit of tokens was reached before there was any text: the next try would
    end in the same place.
    """
    try:
        requested = tuple(_calls(data)) if with_calls else ()
        reason = read_finish_reason(data)
        if reason == "length" and not requested and not _stored_text(data):
            raise LLMRefused(
                "The language model reached its limit of tokens before it wrote any text. Raise "
                "max_completion_tokens, of the request or of the agent."
            )
        text = _stored_text(data) if requested else read_reply(data)
        return Completion(text, requested, read_usage(data), reason)
    except RecursionError:
        raise LLMReplyInvalid("The language model's answer is nested too deeply.") from None


def read_finish_reason(data: Any) -> str:
    """Return why an answer ended: "length", "content_filter", or else "stop"."""
    choices = data.get("choices") if isinstance(data, Mapping) else None
    for place in (choices[0] if isinstance(choices, list) and choices else None, data):
        reason = place.get("finish_reason") if isinstance(place, Mapping) else None
        if isinstance(reason, str) and reason in CUT_REASONS:
            return reason
    return "stop"


def read_usage(data: Any) -> dict[str, int] | None:
    """Return the tokens of prompt, answer and both, if the answer reports them as counts."""
    reported = data.get("usage") if isinstance(data, Mapping) else None
    if not isinstance(reported, Mapping):
        return None
    prompt, answer = reported.get("prompt_tokens"), reported.get("completion_tokens")
    if not (_is_count(prompt) and _is_count(answer)):
        return None
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


def total(usages: Sequence[Mapping[str, int] | None]) -> dict[str, int] | None:
    """Return the usage of several answers together; None if that of one of them is not known."""
    known = [usage for usage in usages if usage is not None]
    if not known or len(known) < len(usages):
        return None
    return {name: sum(usage[name] for usage in known) for name in known[0]}


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < MOST_TOKENS


def _calls(data: Any) -> list[Requested]:
    for _ in range(3):  # choices, message, tool_calls
        if not isinstance(data, Mapping):
            return []
        found = data.get("tool_calls")
        if isinstance(found, list):
            known = [call for call in found if isinstance(call, Mapping)][:MOST_CALLS]
            return [_call(call, number) for number, call in enumerate(known)]
        choices = data.get("choices")
        data = choices[0] if isinstance(choices, list) and choices else data.get("message")
    return []


def _call(call: Mapping[str, Any], number: int) -> Requested:
    function = call.get("function")
    function = function if isinstance(function, Mapping) else call
    call_id, name = call.get("id"), function.get("name")
    return Requested(
        call_id=storable(call_id)[:200]
        if isinstance(call_id, str) and call_id
        else f"call_{number}",
        name=storable(name)[:200] if isinstance(name, str) else "",
        arguments=_arguments(function.get("arguments")),
    )


def _arguments(given: Any) -> Any:
    """The arguments as an object, if they can be read as one; else what shows why not."""
    try:
        text = given if isinstance(given, str) else json.dumps(given)
        if len(text) > LONGEST_ARGUMENTS:
            return f"{storable(text[:100])}… ({len(text)} characters)"
        return storable_value(json.loads(text)) if text.strip() else {}
    except (ValueError, TypeError, RecursionError):
        return storable(str(given)[:200])


def storable_value(value: Any) -> Any:
    """The same JSON as Postgres can store it."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [storable_value(each) for each in value]
    if isinstance(value, dict):
        return {storable(name): storable_value(each) for name, each in value.items()}
    return value


def storable(text: str) -> str:
    """The same text as Postgres can store it."""
    # Postgres stores neither NUL bytes nor lone surrogates, both of which JSON can carry.
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def read_reply(data: Any) -> str:
    """Return the text of an answer, in any of the shapes in use.

    `{"content"|"text"|"response"|…: text}`, `{"message": {"content": text}}`,
    `{"choices": [{"message": {"content": text}}]}`, and text in parts
    (`[{"type": "text", "text": …}]`). Raises LLMReplyInvalid if there is none.
    """
    text = _stored_text(data)
    if not text:
        raise LLMReplyInvalid(
            "The language model's answer holds no text.",
            detail=f"It is {str(data)[:300]!r}. Expected JSON "
            'such as {"content": "…"} or {"choices": [{"message": {"content": "…"}}]}.',
        )
    return text


def _stored_text(data: Any) -> str:
    return storable(_text(data)).strip()


def _text(data: Any) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, list):
        return "".join(_text(part) for part in data if _is_text_part(part))
    if isinstance(data, Mapping):
        choices = data.get("choices")
        if isinstance(choices, list) and choices:
            return _text(choices[0])
        for key in TEXT_KEYS:
            if data.get(key):
                return _text(data[key])
    return ""


def _is_text_part(part: Any) -> bool:
    return not isinstance(part, Mapping) or part.get("type", "text") in ("text", "output_text")


def retry_after_seconds(value: str | None, *, now: datetime | None = None) -> float | None:
    """Return the seconds of a Retry-After header: a number or an HTTP date; None if neither."""
    if not value:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
