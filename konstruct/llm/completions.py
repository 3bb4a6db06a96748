"""Requests to language models and their answers, as JSON. Pure: no I/O."""

import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

from django.utils.http import parse_http_date_safe

from tenants.exceptions import KonstructError
from tenants.redaction import HIDDEN


class LLMError(KonstructError):
    """The language model gave no usable answer.

    `detail` is for operators. It contains no words of the prompt: see `CompletionRequest.excerpt`.
    `status` is the HTTP status of a refusal, and `retry_after` the number of seconds that the
    server asked to wait, if it did.
    """

    code = "llm_failed"
    is_retryable = False
    """Whether the client retries the request."""
    requests = 1
    """The number of requests that were sent, with retries."""
    usage: Mapping[str, int] | None = None
    """Numbers of tokens of an answer that cannot be used, if the server has reported them."""
    cost = Decimal(0)
    """What all calls cost, by the prices at their time."""

    def __init__(
        self,
        message: str,
        *,
        detail: str = "",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.detail, self.status, self.retry_after = detail, status, retry_after


class LLMUnavailable(LLMError):
    """A later request may succeed: no connection, too many requests, an error of the server."""

    code = "llm_unavailable"
    is_retryable = True


class LLMTimeout(LLMUnavailable):
    """The language model did not answer in time."""

    code = "llm_timeout"
    is_retryable = False


class LLMRefused(LLMError):
    """The server refused the request (a 4xx): a later request would fail too."""

    code = "llm_refused"


class LLMReplyInvalid(LLMError):
    """The server answered, without a text or tool calls that can be read."""

    code = "llm_reply_invalid"
    is_retryable = True


class LLMReplyTooLong(LLMReplyInvalid):
    """The answer is longer than the client allows."""

    is_retryable = False

    def __init__(self, size: str, max_characters: int) -> None:
        super().__init__(
            "The language model's answer is too long.",
            detail=f"The server sent {size}, more than the {max_characters:,} characters that "
            "are allowed.",
        )


OnText = Callable[[str], None]

# Further tool calls of an answer are ignored. Longer arguments are cut.
MAX_CALLS: Final = 8
MAX_ARGUMENT_CHARACTERS: Final = 65_536
# A reported number of tokens from this on is invalid, and ignored.
MAX_TOKENS: Final = 2**31
MAX_EXCERPT_CHARACTERS: Final = 300
# OpenAI's names for the reasons why an answer ended before the language model finished it.
CUT_REASONS: Final = ("length", "content_filter")
JSON_INSTRUCTION: Final = {
    "role": "system",
    "content": "Answer with a JSON object, and nothing else.",
}
FILTERED_REPLY: Final = "The language model's content filter withheld this answer."
# The last event of a stream.
DONE: Final = "[DONE]"
# The keys that may have the text, in the order in which they are tried.
TEXT_KEYS: Final = (
    *("content", "text", "response", "message", "output", "reply", "completion"),
    "refusal",
)
TEXT_PARTS: Final = ("text", "output_text", "refusal")
# Words that excerpts hide if the prompt contains them: at least three letters or digits, or a
# character of another script.
_WORD: Final = re.compile(r"[0-9A-Za-z]{3,}|[^\W\x00-\x7f]")


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A tool call that a language model requests. The arguments can be any JSON."""

    call_id: str
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer: text, or tool calls."""

    text: str
    """The text; with tool calls it may be ""."""
    requested: tuple[RequestedCall, ...] = ()
    usage: Mapping[str, int] | None = None
    """Numbers of tokens by OpenAI's names; None if the server does not report them."""
    finish_reason: str = "stop"
    """Why the answer ended: "length" (cut at a limit), "content_filter" or "stop"."""
    requests: int = 1
    """The number of requests that were sent, with failed ones."""
    model: str = ""
    """Name of the model that answered. "": it is not metered."""
    endpoint: str = ""
    """Host and port of its server."""
    cost: Decimal = Decimal(0)
    """What all calls for it cost, with failed ones, by the prices at their time."""
    scores: tuple[float, ...] = ()
    """The scores of a reranker by the positions of the texts."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A request to a language model, by the names of OpenAI's API."""

    messages: Sequence[Mapping[str, Any]]
    model: str
    """The name of the model; "": the deployment chooses by the tier."""
    tier: str
    tools: Sequence[Mapping[str, Any]] = ()
    may_call: bool = True
    """False: the answer must be text, because the message had the maximum number of tool calls."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the request, such as `response_format` and `temperature`."""

    @property
    def accepts_calls(self) -> bool:
        """Whether the answer may be tool calls."""
        return bool(self.tools) and self.may_call

    def excerpt(self, text: str) -> str:
        """Return the beginning of a server's text. Words that the prompt contains are hidden.

        A server may repeat the prompt in its error, and logs must not contain words of users.
        """
        messages = list(self.messages)
        # A server may repeat the prompt with or without escapes.
        prompt = (json.dumps(messages, ensure_ascii=False) + json.dumps(messages)).casefold()
        cut = text.replace("\0", "").strip()[:MAX_EXCERPT_CHARACTERS]
        return _WORD.sub(lambda word: HIDDEN if word[0].casefold() in prompt else word[0], cut)


@dataclass(frozen=True)
class Endpoint:
    """An address, and the API of the server there."""

    url: str
    api: Literal["pool", "openai", "rerank"]

    def payload(
        self, request: CompletionRequest, *, default_model: str = "", stream: bool = False
    ) -> dict[str, Any]:
        """Return the JSON of the request.

        A reranker gets the first message as the query, and the others as the texts. A pool gets
        the tier, and a model only if the agent has one. OpenAI's API requires a model: without one,
        the name of the tier is sent, which gateways such as LiteLLM can map. OpenAI's API also
        requires the word JSON in a message if the answer must be JSON. Tools and options have the
        same names in both APIs. A pool does not stream.
        """
        if self.api == "rerank":
            query, *documents = (message["content"] for message in request.messages)
            rerank = {"query": query, "documents": documents, "top_n": len(documents)}
            return {**rerank, "model": request.model} if request.model else rerank
        model, is_openai = request.model or default_model, self.api == "openai"
        payload = {"messages": list(request.messages), **request.options}
        if is_openai or model:
            payload["model"] = model or request.tier
        if not is_openai:
            payload["model_tier"] = request.tier
        if is_openai and stream:
            payload["stream"] = True
        else:
            payload.pop("stream_options", None)
        if request.tools:
            payload["tools"] = list(request.tools)
            if not request.may_call:
                payload["tool_choice"] = "none"
        form = payload.get("response_format")
        if isinstance(form, Mapping) and form.get("type") == "json_object":
            payload["messages"].append(JSON_INSTRUCTION)
        return payload


def split_credentials(url: str) -> tuple[str, str]:
    """Split `scheme://user:password@host/…` into the URL without them, and "user:password"."""
    parts = urlsplit(url)
    credentials, at, host = parts.netloc.rpartition("@")
    user, _, password = unquote(credentials).partition(":")
    return parts._replace(netloc=host).geturl(), at and f"{user}:{password}"


def host_of(url: str) -> str:
    """Return the host and the port of a URL, without credentials."""
    return urlsplit(url).netloc.rpartition("@")[2]


def endpoints(url: str, api: str, *, known_api: str | None = None) -> list[Endpoint]:
    """Return the addresses to try, in order.

    With "auto", a URL that ends with `/v1` or `/chat/completions` has OpenAI's API. For any other
    URL, `/complete` is tried first, and then `/v1/chat/completions`.

    Args:
        url: LLM_POOL_URL without credentials.
        api: LLM_API: "auto", "pool" or "openai"; or "rerank".
        known_api: the API of an earlier answer, "pool" or "openai"; None: no earlier answer.
    """
    base = url.rstrip("/")
    if api == "rerank":
        return [Endpoint(f"{base.removesuffix('/rerank')}/rerank", "rerank")]
    is_openai = base.endswith(("/v1", "/chat/completions"))
    path = "" if base.endswith("/chat/completions") else "/chat/completions"
    openai = Endpoint(base + (path if is_openai else f"/v1{path}"), "openai")
    pool = Endpoint(f"{base}/complete", "pool")
    if api == "auto" and known_api is None and not is_openai:
        return [pool, openai]
    return [pool] if api == "pool" or (api == "auto" and known_api == "pool") else [openai]


def read_completion(data: Any, *, with_calls: bool) -> Completion:
    """Return the answer of a server, in any of the formats in use.

    The text is that of `{"content"|"text"|"response"|…: text}`, `{"message": {"content": text}}`,
    `{"choices": [{"message": {"content": text}}]}`, or in parts (`[{"type": "text", "text": …}]`).
    A refusal is a text too. Tool calls are in `{"tool_calls": […]}`, in `message`, or in the first
    choice.

    Args:
        data: the JSON.
        with_calls: whether to read tool calls.

    Raises:
        LLMReplyInvalid: there is neither text nor a tool call.
        LLMRefused: the limit of tokens was reached before the text began. A retry would fail too.
    """
    try:
        requested = tuple(_calls(data)) if with_calls else ()
        text = make_storable(_text(data)).strip()
    except RecursionError:
        raise LLMReplyInvalid("The language model's answer is nested too deeply.") from None
    reason, usage = _finish_reason(data), _usage(data)
    if not text and not requested:
        error: LLMRefused | LLMReplyInvalid
        if reason == "content_filter":
            return Completion(FILTERED_REPLY, requested, usage, reason)
        if reason == "length":
            error = LLMRefused(
                "The language model reached its limit of tokens before it wrote any text. Raise "
                "max_completion_tokens, of the request or of the agent."
            )
        else:
            error = LLMReplyInvalid(
                "The language model's answer holds no text.",
                detail='Expected JSON such as {"content": "…"} or '
                '{"choices": [{"message": {"content": "…"}}]}.',
            )
        error.usage = usage
        raise error
    return Completion(text, requested, usage, reason)


def read_scores(data: Any, count: int) -> Completion:
    """Return the answer of a reranker: `{"results": [{"index": 0, "relevance_score": 0.9}]}`.

    Args:
        data: the JSON.
        count: the number of texts.

    Raises:
        LLMReplyInvalid: not every text has one score.
    """
    results = _at(data, "results")
    scores: dict[Any, float] = {
        result.get("index"): result["relevance_score"]
        for result in (results if isinstance(results, list) else ())
        if isinstance(result, Mapping)
        and type(result.get("index")) is int
        and type(result.get("relevance_score")) in (int, float)
        and abs(result["relevance_score"]) <= sys.float_info.max  # no NaN
    }
    if scores.keys() != set(range(count)) or len(results) != count:
        raise LLMReplyInvalid(
            "The reranker's answer has not one score for each text.",
            detail='Expected JSON such as {"results": [{"index": 0, "relevance_score": 0.9}]}.',
        )
    total, usage = _at(data, "usage", "total_tokens"), None
    if type(total) is int and 0 <= total < MAX_TOKENS:
        usage = {"prompt_tokens": total, "completion_tokens": 0, "total_tokens": total}
    return Completion("", usage=usage, scores=tuple(scores[number] for number in range(count)))


def _at(data: Any, *path: str | int) -> Any:
    """Return the value at a path in JSON, such as "choices", 0; None if there is none."""
    for key in path:
        if isinstance(data, Mapping):
            data = data.get(key)
        else:
            data = data[0] if key == 0 and isinstance(data, list) and data else None
    return data


def _finish_reason(data: Any) -> str:
    reasons = (_at(data, "choices", 0, "finish_reason"), _at(data, "finish_reason"))
    return next((reason for reason in reasons if reason in CUT_REASONS), "stop")


def _usage(data: Any) -> dict[str, int] | None:
    counts = {name: _at(data, "usage", name) for name in ("prompt_tokens", "completion_tokens")}
    if not all(type(count) is int and 0 <= count < MAX_TOKENS for count in counts.values()):
        return None
    return {**counts, "total_tokens": sum(counts.values())}


def total_usage(usages: Sequence[Mapping[str, int] | None]) -> dict[str, int] | None:
    """Return the sum of the usage of several answers; None if one of them is unknown."""
    reported = [usage for usage in usages if usage is not None]
    if not reported or len(reported) < len(usages):
        return None
    return {name: sum(usage[name] for usage in reported) for name in reported[0]}


def _calls(data: Any) -> Iterator[RequestedCall]:
    for place in ((), ("message",), ("choices", 0), ("choices", 0, "message")):
        tool_calls = _at(data, *place, "tool_calls")
        if isinstance(tool_calls, list):
            calls = [call for call in tool_calls if isinstance(call, Mapping)]
            yield from (_call(call, at) for at, call in enumerate(calls[:MAX_CALLS]))
            return


def _call(call: Mapping[str, Any], number: int) -> RequestedCall:
    function = call.get("function")
    function = function if isinstance(function, Mapping) else call
    call_id, name = call.get("id"), function.get("name")
    return RequestedCall(
        make_storable(call_id)[:200] if isinstance(call_id, str) and call_id else f"call_{number}",
        make_storable(name)[:200] if isinstance(name, str) else "",
        _arguments(function.get("arguments")),
    )


def _arguments(given: Any) -> Any:
    """Return the arguments from JSON; if too long or invalid, the beginning of their text."""
    try:
        text = given if isinstance(given, str) else json.dumps(given)
        if len(text) > MAX_ARGUMENT_CHARACTERS:
            return f"{make_storable(text[:100])}… ({len(text)} characters)"
        return make_storable_value(json.loads(text)) if text.strip() else {}
    except (ValueError, TypeError, RecursionError):
        return make_storable(str(given)[:200])


def make_storable_value(value: Any) -> Any:
    """Return JSON that Postgres can store: see `make_storable`. Infinite numbers become texts."""
    if isinstance(value, str):
        return make_storable(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [make_storable_value(item) for item in value]
    if isinstance(value, dict):
        return {make_storable(name): make_storable_value(item) for name, item in value.items()}
    return value


def make_storable(text: str) -> str:
    """Return the text without NUL bytes and lone surrogates, which Postgres cannot store.

    The two halves of a pair become their character.
    """
    joined = text.replace("\0", "").encode("utf-16-le", "surrogatepass")
    return joined.decode("utf-16-le", "surrogatepass").encode("utf-8", "replace").decode()


def _text(data: Any) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, list):
        return "".join(
            _text(part)
            for part in data
            if not isinstance(part, Mapping) or part.get("type", "text") in TEXT_PARTS
        )
    if isinstance(data, Mapping):
        choice = _at(data, "choices", 0)
        if choice is not None:
            return _text(choice)
        for key in TEXT_KEYS:
            if data.get(key):
                return _text(data[key])
    return ""


def retry_after_seconds(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header: a number or an HTTP date; None if neither."""
    if value and value.strip().isdecimal():
        return float(value)
    moment = parse_http_date_safe(value or "")
    return None if moment is None else max(0.0, moment - time.time())


class StreamedAnswer:
    """Reads an answer from the events of a stream of OpenAI's API.

    Args:
        on_text: called with each piece of the text, without white space at the beginning and the
            end of the text.
        max_characters: the maximum length of the answer.
    """

    def __init__(self, on_text: OnText, max_characters: int) -> None:
        self._on_text, self._max_characters = on_text, max_characters
        self._pieces: list[str] = []
        self._held_back: list[str] = []
        self._length, self._has_sent, self._half = 0, False, ""
        self._calls: dict[int, dict[str, Any]] = {}
        self._usage: Any = None
        self._is_complete = False
        self._finish_reason: Any = None

    def add(self, event: Any) -> None:
        """Read the next event. Raises LLMReplyTooLong."""
        self._is_complete = self._is_complete or event == DONE
        self._usage = _at(event, "usage") or self._usage
        choice = _at(event, "choices", 0)
        self._finish_reason = _at(choice, "finish_reason") or self._finish_reason
        piece = _at(choice, "delta", "content") or _at(choice, "delta", "refusal")
        if isinstance(piece, str):
            text = self._half + piece
            # An emoji may be cut between two deltas.
            self._half = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
            self._add_text(make_storable(text.removesuffix(self._half)))
        calls = _at(choice, "delta", "tool_calls")
        for call in calls if isinstance(calls, list) else ():
            self._length += len(str(call))
            self._add_call(call)
        if self._length > self._max_characters:
            raise LLMReplyTooLong(f"more than {self._max_characters:,}", self._max_characters)

    def document(self) -> dict[str, Any]:
        """Return the whole answer in the format of a response without a stream.

        Raises:
            LLMUnavailable: the stream had neither DONE nor a finish reason.
        """
        if not (self._is_complete or self._finish_reason):
            raise LLMUnavailable("The language model's answer broke off.")
        calls = [call for _, call in sorted(self._calls.items())]
        message = {"content": "".join(self._pieces), "tool_calls": calls}
        choice = {"message": message, "finish_reason": self._finish_reason}
        return {"choices": [choice], "usage": self._usage}

    def _add_text(self, piece: str) -> None:
        self._length += len(piece)
        self._pieces.append(piece)
        # White space is held back, because it may be at the end of the answer.
        visible = piece.rstrip()
        if visible:
            before = "".join(self._held_back)
            self._on_text(before + visible if self._has_sent else visible.lstrip())
            self._has_sent = True
            self._held_back.clear()
        self._held_back.append(piece[len(visible) :])

    def _add_call(self, delta: Any) -> None:
        index = _at(delta, "index") or 0
        if not isinstance(index, int) or not 0 <= index < MAX_CALLS:
            return
        call = self._calls.setdefault(
            index, {"id": _at(delta, "id"), "function": {"name": "", "arguments": ""}}
        )
        for name, text in call["function"].items():
            more = _at(delta, "function", name)
            if isinstance(more, str):
                call["function"][name] = text + more
