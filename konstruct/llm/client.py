"""The client of language models: any OpenAI-compatible server, or a pool at `/complete`.

Requests use openai's SDK. The timeouts of the SDK are for each read. So requests run in an event
loop in another thread, which can cancel a request at its deadline.
"""

import asyncio
import json
import logging
import os
import random
import threading
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import httpx
from django.conf import settings

from konstruct.llm.completions import (
    Completion,
    CompletionRequest,
    Endpoint,
    OnText,
    StreamedAnswer,
    endpoints,
    host_of,
    read_completion,
    retry_after_seconds,
    split_credentials,
)
from konstruct.llm.exceptions import (
    LLMError,
    LLMRefused,
    LLMReplyInvalid,
    LLMReplyTooLong,
    LLMTimeout,
    LLMUnavailable,
)
from konstruct.llm.responder import BuiltInResponder
from tenants import traces
from tenants.context import current_tenant_id, release_connections
from tenants.exceptions import detail_of
from tenants.limits.fair_shares import FairShares
from tenants.metrics import LimitedValues, counter, histogram
from tenants.once import Once

if TYPE_CHECKING:
    import openai

logger = logging.getLogger(__name__)

MAX_REPLY_CHARACTERS: Final = 65_536
MAX_ATTEMPTS: Final = 3
# No attempt begins later than this after the first one. The job of the reply is retried later.
MAX_RETRY_SECONDS: Final = 30.0
FIRST_PAUSE_SECONDS: Final = 0.5
MAX_PAUSE_SECONDS: Final = 5.0
CONNECT_SECONDS: Final = 5.0
# The maximum size of a character: twelve bytes in JSON; in a stream, each event adds some hundred.
BYTES_PER_CHARACTER: Final = 12
BYTES_PER_STREAMED_CHARACTER: Final = 512
OVERHEAD_BYTES: Final = 64 * 1024
RETRIED_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
UNKNOWN_PATH_STATUSES: Final = frozenset({404, 405})
SENT_HEADERS: Final = frozenset(
    {
        *("host", "connection", "user-agent", "authorization"),
        *("accept", "accept-encoding", "content-type", "content-length"),
    }
)
EVENT_STREAM: Final = "text/event-stream"
# How often a request that waits for LLM_MAX_CONCURRENT checks for a free slot.
SLOT_POLL_SECONDS: Final = 0.1
# The tenant of requests without a tenant, for FairShares.
NO_TENANT: Final = UUID(int=0)

# Hosts of language models in metrics: at most ten.
_hosts = LimitedValues(10)
_TOKENS: Final = ("prompt_tokens", "completion_tokens")
CALLS: Final = counter(
    "konstruct_model_calls_total",
    "Requests to the language model, with repeated ones, by outcome.",
    endpoint=_hosts,
    outcome=(
        *("done", "interrupted"),
        *(error.code for error in (LLMUnavailable, LLMTimeout, LLMRefused, LLMReplyInvalid)),
    ),
)
CALL_SECONDS: Final = histogram(
    "konstruct_model_call_seconds",
    "How long requests to the language model took, failed ones too.",
    endpoint=_hosts,
)
FIRST_TEXT_SECONDS: Final = histogram(
    "konstruct_model_first_text_seconds",
    "From a request to the first text of its answer, of answers that are streamed.",
    endpoint=_hosts,
)
TOKENS: Final = counter(
    "konstruct_model_tokens_total",
    "Tokens as the language model reports them.",
    endpoint=_hosts,
    kind=_TOKENS,
)
# The API by URL, from earlier answers, so that "auto" tries once in a process.
_known_apis: dict[str, str] = {}
# For creating the event loop and the client once in a process.
_connecting = threading.Lock()
_max_characters: ContextVar[int] = ContextVar("max_characters")


@dataclass(frozen=True)
class HttpLanguageModel:
    """A language model behind HTTP.

    `timeout` is in seconds, for all attempts and the pauses between them.
    """

    url: str = field(repr=False)
    api: str = "auto"
    key: str = field(default="", repr=False)
    default_model: str = ""
    timeout: float = 60.0
    max_characters: int = 65_536
    """The maximum length of an answer. Of a longer one only the beginning is read."""
    sleep: Callable[[float], None] = time.sleep
    shares: FairShares | None = None
    """The limit of parallel requests of this process to the server. None: no limit."""

    @property
    def host(self) -> str:
        """Host and port of the server, without credentials: the endpoint in metrics."""
        return host_of(self.url)

    @release_connections()
    def complete(self, request: CompletionRequest, on_text: OnText | None = None) -> Completion:
        """Return the answer, after up to MAX_ATTEMPTS attempts.

        Do not call it in a transaction: the thread returns its pooled database connections while it
        waits.

        Args:
            request: the prompt, tools and options.
            on_text: called in this thread with each piece of the text as it comes. It may use the
                database. Tool calls may follow the text. After the first piece there is no retry.

        Raises:
            LLMUnavailable: no connection, or a temporary error of the server.
            LLMTimeout: there was no answer within `timeout`.
            LLMRefused: the server refused the request.
            LLMReplyInvalid: the answer has neither text nor tool calls.
        """
        now = time.monotonic()
        deadline, last_start = now + self.timeout, now + min(self.timeout, MAX_RETRY_SECONDS)
        with _connecting:
            loop, client = _connection(os.getpid())
        for attempt in range(1, MAX_ATTEMPTS + 1):
            pieces: SimpleQueue[str | None] = SimpleQueue()
            put_piece = None if on_text is None else pieces.put
            answer = asyncio.run_coroutine_threadsafe(
                self._request(client, request, put_piece, deadline, current_tenant_id()), loop
            )
            answer.add_done_callback(lambda _, queue=pieces: queue.put(None))  # type: ignore[misc]
            has_text, started_at, outcome = False, time.monotonic(), "interrupted"
            try:
                with traces.span(
                    "model",
                    traces.CLIENT,
                    tenant_id=current_tenant_id(),
                    endpoint=self.host,
                    attempt=attempt,
                ):
                    for piece in _iterate(pieces):
                        if not has_text:
                            seconds = time.monotonic() - started_at
                            FIRST_TEXT_SECONDS.of(endpoint=self.host).observe(seconds)
                        has_text = True
                        on_text(piece)  # type: ignore[misc]
                    completion = answer.result()
                    tokens = _tokens(completion)
                    traces.set_attributes(name=None, **tokens)
            except LLMError as error:
                outcome, error.requests = error.code, attempt
                pause = FIRST_PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(0.8, 1.2)  # noqa: S311
                pause = max(pause, getattr(error, "retry_after", None) or 0.0)
                is_late = pause > MAX_PAUSE_SECONDS or time.monotonic() + pause > last_start
                if has_text or is_late or attempt == MAX_ATTEMPTS or not error.is_retryable:
                    raise
                logger.warning("%s Trying again in %.1f s.", detail_of(error), pause)
            else:
                outcome = "done"
                for kind, number in tokens.items():
                    TOKENS.of(endpoint=self.host, kind=kind).inc(number)
                return replace(completion, requests=attempt)
            finally:
                answer.cancel()
                CALLS.of(endpoint=self.host, outcome=outcome).inc()
                CALL_SECONDS.of(endpoint=self.host).observe(time.monotonic() - started_at)
            self.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def _request(
        self,
        client: "openai.AsyncOpenAI",
        request: CompletionRequest,
        on_text: OnText | None,
        deadline: float,
        tenant_id: UUID | None,
    ) -> Completion:
        _max_characters.set(self.max_characters)
        # Errors contain the address, and must not contain credentials.
        url, _ = split_credentials(self.url)
        *others, last = endpoints(url, self.api, known_api=_known_apis.get(url))
        try:
            async with (
                asyncio.timeout(max(0.0, deadline - time.monotonic())),
                self._slot(tenant_id or NO_TENANT),
            ):
                for endpoint in (*others, last):
                    try:
                        data = await self._post(client, endpoint, request, on_text)
                        break
                    except _UnknownPath:
                        if endpoint is last:
                            raise
        except TimeoutError:
            raise LLMTimeout(
                f"The language model did not answer within {self.timeout:g} seconds.",
                detail=f"{url} was asked. Raise LLM_TIMEOUT if it needs longer, or "
                "LLM_MAX_CONCURRENT if it may be asked more at once.",
            ) from None
        if self.api == "auto":
            _known_apis[url] = endpoint.api
        try:
            completion = read_completion(data, with_calls=request.accepts_calls)
        except LLMReplyInvalid as error:
            error.detail = f"The server sent {request.excerpt(str(data))!r}. {error.detail}"
            raise
        if len(completion.text) > self.max_characters:
            raise LLMReplyTooLong(f"{len(completion.text):,} characters", self.max_characters)
        return completion

    @asynccontextmanager
    async def _slot(self, tenant_id: UUID) -> AsyncIterator[None]:
        """Hold one of the tenant's slots for parallel requests during the block."""
        if self.shares is None:
            yield
            return
        while not self.shares.enter(tenant_id):  # ends: at the deadline
            await asyncio.sleep(SLOT_POLL_SECONDS)
        try:
            yield
        finally:
            self.shares.leave(tenant_id)

    async def _post(
        self,
        client: "openai.AsyncOpenAI",
        endpoint: Endpoint,
        request: CompletionRequest,
        on_text: OnText | None,
    ) -> Any:
        """Return the JSON of the answer; of a stream, in the format of a response without one."""
        import openai

        _, credentials = split_credentials(self.url)
        authorization: str | openai.Omit = f"Bearer {self.key}" if self.key else openai.Omit()
        if credentials:
            authorization = f"Basic {b64encode(':'.join(credentials).encode()).decode()}"
        payload = endpoint.payload(
            request, default_model=self.default_model, stream=on_text is not None
        )
        try:
            stream = await client.post(
                endpoint.url,
                body=payload,
                options={"headers": {"Authorization": authorization}},
                cast_to=object,
                stream=True,
                stream_cls=openai.AsyncStream[Any],
            )
            async with stream:
                if on_text is None or not _is_event_stream(stream.response):
                    return json.loads(await stream.response.aread())
                streamed = StreamedAnswer(on_text, self.max_characters)
                async for event in stream:
                    streamed.add(event)
                return streamed.document(is_complete=b"[DONE]" in stream.response.stream.end)  # type: ignore[union-attr]
        except openai.APIStatusError as error:
            raise _status_error(endpoint, request, error.response) from None
        except openai.APITimeoutError:
            raise TimeoutError from None
        except (openai.APIConnectionError, httpx.HTTPError) as error:
            reason = request.excerpt(str(error.__cause__ or error))
            raise LLMUnavailable(
                "The language model cannot be reached.",
                detail=f"{endpoint.url}: {reason}. Is LLM_POOL_URL right, and is it running?",
            ) from None
        except openai.APIError as error:
            raise LLMUnavailable(
                "The language model's answer broke off.",
                detail=f"{endpoint.url} sent the error {request.excerpt(str(error))!r}.",
            ) from None
        except httpx.InvalidURL:
            # The error is not shown, because it quotes a part of the URL, such as a password.
            raise LLMRefused(
                "The language model cannot be asked: its address is not a URL.",
                detail="LLM_POOL_URL is not a URL. Percent-encode special characters in its "
                "user and password.",
            ) from None
        except (ValueError, RecursionError) as error:
            excerpt = request.excerpt(getattr(error, "doc", "") or "no UTF-8")
            raise LLMReplyInvalid(
                "The language model's answer cannot be read: it is not JSON.",
                detail=f"{endpoint.url} answered {excerpt!r}.",
            ) from None


def _iterate(pieces: SimpleQueue[str | None]) -> Iterator[str]:
    """Yield the pieces as they come, until the request ends."""
    # Ends: the request ends at its deadline, and then puts None.
    while True:
        with release_connections():
            piece = pieces.get()
        if piece is None:
            return
        yield piece


def _tokens(completion: Completion) -> dict[str, int]:
    usage = completion.usage or {}
    return {kind: usage[kind] for kind in _TOKENS if kind in usage}


def language_model(timeout: float | None = None) -> HttpLanguageModel | BuiltInResponder:
    """Return the language model of the settings: by URL, or the built-in responder.

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
        max_characters=MAX_REPLY_CHARACTERS,
        shares=_shares(settings.LLM_POOL_URL, settings.LLM_MAX_CONCURRENT),
    )


@Once
def _shares(url: str, max_concurrent: int) -> FairShares | None:
    """Return the limit of parallel requests of this process to the server; None if it is 0."""
    return FairShares(max_concurrent, max_concurrent // 10) if max_concurrent else None


class _UnknownPath(LLMRefused):
    """The server does not know the path. It may have the other API."""


def _status_error(
    endpoint: Endpoint, request: CompletionRequest, answer: httpx.Response
) -> LLMError:
    status = answer.status_code
    excerpt = request.excerpt(answer.content.decode("utf-8", "replace"))
    detail = f"{endpoint.url} answered {status}: {excerpt!r}."
    if status in RETRIED_STATUSES:
        return LLMUnavailable(
            f"The language model is not available now (HTTP {status}).",
            retry_after=retry_after_seconds(answer.headers.get("Retry-After")),
            detail=detail,
        )
    refused = _UnknownPath if status in UNKNOWN_PATH_STATUSES else LLMRefused
    return refused(
        f"The language model refused the request (HTTP {status}). Check the agent's model.",
        status=status,
        detail=f"{detail} Check LLM_POOL_URL, LLM_API, LLM_API_KEY and the agent's model.",
    )


@Once
def _connection(process_id: int) -> tuple[asyncio.AbstractEventLoop, "openai.AsyncOpenAI"]:
    """Return the event loop and the client of this process. They are created on first use.

    The import takes a second and 25 MB. A forked process creates its own.
    """
    import openai

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="language-model", daemon=True).start()
    timeout = httpx.Timeout(None, connect=CONNECT_SECONDS)
    http = httpx.AsyncClient(
        timeout=timeout,
        # By default at most 100 parallel requests.
        limits=httpx.Limits(max_keepalive_connections=20),
        headers={"Accept-Encoding": "identity"},
        event_hooks={"request": [_keep_own_headers], "response": [_limit_body]},
    )
    # Each request has its key and its address. Without these two arguments, the SDK would read
    # environment variables.
    client = openai.AsyncOpenAI(
        api_key="unused", base_url="http://unused", max_retries=0, timeout=timeout, http_client=http
    )
    return loop, client


def _is_event_stream(answer: httpx.Response) -> bool:
    return answer.headers.get("Content-Type", "").startswith(EVENT_STREAM)


async def _keep_own_headers(request: httpx.Request) -> None:
    """Remove headers that the SDK adds, such as those from environment variables."""
    for name in request.headers.keys() - SENT_HEADERS:
        del request.headers[name]


async def _limit_body(answer: httpx.Response) -> None:
    """Limit the number of bytes that the SDK reads."""
    characters = _max_characters.get()
    size = BYTES_PER_STREAMED_CHARACTER if _is_event_stream(answer) else BYTES_PER_CHARACTER
    answer.stream = _LimitedBody(answer.stream, characters, size)
    # No compression is requested. A compressed answer would have no limit after decompression.
    answer.headers.pop("Content-Encoding", None)


class _LimitedBody(httpx.AsyncByteStream):
    """A body that raises LLMReplyTooLong after the maximum number of bytes."""

    def __init__(self, body: Any, max_characters: int, bytes_per_character: int) -> None:
        self._body, self._max_characters = body, max_characters
        self._max_bytes = bytes_per_character * max_characters + OVERHEAD_BYTES
        self.end = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._body:
            size += len(chunk)
            if size > self._max_bytes:
                raise LLMReplyTooLong(f"more than {self._max_bytes:,} bytes", self._max_characters)
            self.end = (self.end + chunk)[-64:]
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()
