"""Language models: an LLM pool, any OpenAI-compatible server, or the built-in responder."""

import atexit
import functools
import json
import logging
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import httpx
from django.conf import settings

from konstruct.llm import deadline, responder
from konstruct.llm.completions import (
    Completion,
    CompletionRequest,
    Endpoint,
    endpoints,
    part_credentials,
    read_completion,
    retry_after_seconds,
)
from konstruct.llm.event_stream import MEDIA_TYPE, Text, read_stream
from konstruct.llm.exceptions import LLMRefused, LLMReplyInvalid, LLMTimeout, LLMUnavailable
from tenants.redaction import redact

logger = logging.getLogger(__name__)

Tell = Callable[[str], None]

TRIES = 3
FIRST_PAUSE = 0.5
# A worker does not sleep longer than this inside a task; the reply's outbox row waits instead.
LONGEST_PAUSE = 5.0
CONNECT_SECONDS = 5.0
# Of an answer's bytes: JSON can take twelve for a character, and says more than the text.
BYTES_PER_CHARACTER = 12
BYTES_BESIDE_THE_TEXT = 64 * 1024
RETRIED_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
UNKNOWN_PATH_STATUSES = frozenset({404, 405})


@dataclass(frozen=True)
class PoolResponse:
    """An HTTP response, read whole."""

    status: int
    body: bytes
    retry_after: str | None


class LanguageModel(Protocol):
    """Whatever turns messages into one answer."""

    def complete(self, request: CompletionRequest, tell: Tell | None = None) -> Completion:
        """Return the answer, in words or in calls of the tools that are offered.

        Raises an LLMError if there is none.

        Args:
            tell: is called with each piece of the text as it comes, where it does. What is told may
                come before calls.
        """
        ...


@dataclass(frozen=True)
class BuiltInResponder:
    """Answers without a language model, by quoting; see responder.py."""

    def complete(self, request: CompletionRequest, tell: Tell | None = None) -> Completion:
        """Quote what fits the last user message; what is to be remembered goes to the tool."""
        last = request.messages[-1]
        if last["role"] == "tool":
            return Completion(responder.after_tool(last["content"]))
        offered = request.tools if request.takes_calls else ()
        requested = responder.tool_wanted(request.messages, offered)
        if requested is not None:
            return Completion("", (requested,))
        return Completion(responder.respond(request.messages))


@dataclass(frozen=True)
class HttpLanguageModel:
    """A language model behind HTTP, with a time-out and a few quick tries.

    `timeout` is in seconds, for an answer as a whole: all tries of it, and the pauses between them.
    """

    url: str = field(repr=False)
    api: str = "auto"
    key: str = field(default="", repr=False)
    default_model: str = ""
    timeout: float = 60.0
    longest_reply: int = 65_536
    """Characters; a longer answer is an error, and no more of it is read than is needed."""
    sleep: Callable[[float], None] = time.sleep

    def complete(self, request: CompletionRequest, tell: Tell | None = None) -> Completion:
        """Return the answer.

        Raises LLMUnavailable where a later try may succeed, LLMRefused where it cannot, and
        LLMReplyInvalid for an answer without text, or calls where they are wanted.
        """
        with deadline.within(self.timeout):
            return self._complete(request, tell)

    def _complete(self, request: CompletionRequest, tell: Tell | None) -> Completion:
        text = None if tell is None else Text(tell)
        # Without the credentials, an error can say which address was asked.
        url, _ = part_credentials(self.url)
        candidates = endpoints(url, self.api, known=_spoken.get(url))
        for number, endpoint in enumerate(candidates, start=1):
            payload = endpoint.payload(
                request, default_model=self.default_model, stream=text is not None
            )
            answer = self._post_with_retries(endpoint, payload, text)
            if answer.status in UNKNOWN_PATH_STATUSES and number < len(candidates):
                continue
            if not 200 <= answer.status < 300:
                _refuse(endpoint.url, answer)
            if self.api == "auto":
                _spoken[url] = endpoint.api
            data = _parsed(endpoint.url, answer)
            return self._within_limit(read_completion(data, with_calls=request.takes_calls))
        raise AssertionError("endpoints() names at least one endpoint")

    def _within_limit(self, completion: Completion) -> Completion:
        if len(completion.text) > self.longest_reply:
            raise LLMReplyInvalid(
                "The language model's answer is too long.",
                detail=f"It has {len(completion.text):,} characters, more than the "
                f"{self.longest_reply:,} of LLM_MAX_REPLY_CHARACTERS.",
            )
        return completion

    def _post_with_retries(
        self, endpoint: Endpoint, payload: Mapping[str, Any], text: Text | None
    ) -> PoolResponse:
        for attempt in range(1, TRIES + 1):
            pause = FIRST_PAUSE * 2 ** (attempt - 1) * random.uniform(0.8, 1.2)  # noqa: S311
            asked: float | None = None
            try:
                answer = self._post(endpoint.url, payload, text)
            except httpx.TimeoutException as error:
                # It has already cost the whole time-out: the next try is a later task's.
                raise LLMTimeout(
                    f"The language model did not answer within {self.timeout:g} seconds.",
                    detail=f"{endpoint.url}: {type(error).__name__}. "
                    "Raise LLM_TIMEOUT if it needs longer.",
                ) from error
            except httpx.TransportError as error:
                problem = "The language model cannot be reached."
                detail = (
                    f"{endpoint.url}: {error or type(error).__name__}. "
                    "Is LLM_POOL_URL right, and is it running?"
                )
            except httpx.InvalidURL:
                # Not what the error says: it quotes a part of the URL, maybe of a password.
                raise LLMRefused(
                    "The language model cannot be asked: its address is not a URL.",
                    detail="LLM_POOL_URL is not a URL. Percent-encode special characters in its "
                    "user and password.",
                ) from None
            else:
                if answer.status not in RETRIED_STATUSES:
                    return answer
                asked = retry_after_seconds(answer.retry_after)
                problem = f"The language model is not available now (HTTP {answer.status})."
                detail = _says(endpoint.url, answer)
            pause = max(pause, asked or 0.0)
            # Whoever reads along would read the beginning twice.
            was_told = text is not None and text.was_told
            if was_told or attempt == TRIES or pause > min(LONGEST_PAUSE, deadline.seconds_left()):
                raise LLMUnavailable(problem, retry_after=asked, detail=detail)
            logger.warning("%s %s Trying again in %.1f s.", problem, redact(detail), pause)
            self.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _post(self, url: str, payload: Mapping[str, Any], text: Text | None) -> PoolResponse:
        """Post and read the whole answer, within the time-out and the size limit."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        _, credentials = part_credentials(self.url)
        auth = httpx.BasicAuth(*credentials) if credentials else None
        timeout = httpx.Timeout(self.timeout, connect=min(CONNECT_SECONDS, self.timeout))
        most = BYTES_PER_CHARACTER * self.longest_reply + BYTES_BESIDE_THE_TEXT
        body = bytearray()
        with _client().stream(
            "POST", url, json=payload, headers=headers, auth=auth, timeout=timeout
        ) as response:
            if text is not None and _is_stream(response):
                data = read_stream(
                    response.iter_bytes(), text, most_bytes=most, longest=self.longest_reply
                )
                return PoolResponse(response.status_code, json.dumps(data).encode(), None)
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > most:
                    raise LLMReplyInvalid(
                        "The language model's answer is too long.",
                        detail=f"{url} sent more than {most:,} bytes, which no answer of "
                        f"{self.longest_reply:,} characters takes (LLM_MAX_REPLY_CHARACTERS).",
                    )
        return PoolResponse(response.status_code, bytes(body), response.headers.get("Retry-After"))


def language_model(timeout: float | None = None) -> LanguageModel:
    """Return the language model that the settings name: by URL, or the built-in responder.

    Args:
        timeout: seconds for an answer, at most those of LLM_TIMEOUT.
    """
    if not settings.LLM_POOL_URL:
        return BuiltInResponder()
    return HttpLanguageModel(
        url=settings.LLM_POOL_URL,
        api=settings.LLM_API,
        key=settings.LLM_API_KEY,
        default_model=settings.LLM_MODEL,
        timeout=settings.LLM_TIMEOUT if timeout is None else min(timeout, settings.LLM_TIMEOUT),
        longest_reply=settings.LLM_MAX_REPLY_CHARACTERS,
    )


# Which API a URL turned out to speak, so that `auto` asks once per process.
_spoken: dict[str, str] = {}


@functools.cache
def _client() -> httpx.Client:
    """Return this process's connection pool."""
    client = deadline.client()
    atexit.register(client.close)
    return client


# A forked worker must not speak over its parent's sockets.
os.register_at_fork(after_in_child=_client.cache_clear)


def _is_stream(response: httpx.Response) -> bool:
    return response.is_success and response.headers.get("Content-Type", "").startswith(MEDIA_TYPE)


def _parsed(url: str, answer: PoolResponse) -> Any:
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise LLMReplyInvalid(
            "The language model's answer cannot be read: it is not JSON.", detail=_says(url, answer)
        ) from error


def _refuse(url: str, answer: PoolResponse) -> NoReturn:
    raise LLMRefused(
        f"The language model refused the request (HTTP {answer.status}). Check the agent's model.",
        detail=f"{_says(url, answer)} Check LLM_POOL_URL, LLM_API, LLM_API_KEY and the agent's "
        "model.",
    )


def _says(url: str, answer: PoolResponse) -> str:
    return f"{url} answered {answer.status}: {_excerpt(answer)!r}."


def _excerpt(answer: PoolResponse) -> str:
    return answer.body[:300].decode("utf-8", "replace").replace("\0", "").strip()
