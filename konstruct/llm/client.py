"""The client of language models: any OpenAI-compatible server, or a pool at `/complete`.

Requests use openai's SDK, in the thread of the caller. They end at their deadline.
"""

import json
import logging
import os
import random
import sys
import time
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import httpcore
import httpx
from django.conf import settings

from konstruct.llm import completions, responder
from konstruct.llm.completions import Completion, CompletionRequest, Endpoint, LLMError, OnText
from konstruct.outgoing import AddressRefused, Network, PublicNetwork, check_url
from tenants import exceptions, metrics, redaction, traces
from tenants.context import current_tenant_id, release_connections
from tenants.limits.fair_shares import FairShares, Once

if TYPE_CHECKING:
    import openai

logger = logging.getLogger(__name__)

# The maximum length of an answer. Of a longer one only the beginning is read.
MAX_REPLY_CHARACTERS: Final = 65_536
# The maximum size of a character: twelve bytes in JSON; in a stream, each event adds some hundred.
BYTES_PER_CHARACTER: Final = 12
BYTES_PER_STREAMED_CHARACTER: Final = 512
OVERHEAD_BYTES: Final = 64 * 1024
# Further headers, such as those that openai's SDK reads from the environment, are not sent.
SENT_HEADERS: Final = (
    *("Host", "User-Agent", "Authorization", "Accept", "Content-Type", "Content-Length"),
)
MAX_ATTEMPTS: Final = 3
# No attempt begins later than this after the first one. The job of the reply is retried later.
MAX_RETRY_SECONDS: Final = 30.0
FIRST_PAUSE_SECONDS: Final = 0.5
MAX_PAUSE_SECONDS: Final = 5.0
CONNECT_SECONDS: Final = 5.0
RETRIED_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
UNKNOWN_PATH_STATUSES: Final = frozenset({404, 405})
# The tenant of requests without a tenant, for FairShares.
NO_TENANT: Final = UUID(int=0)

# The endpoint of tenants' own language models in metrics and traces.
OF_TENANT: Final = "tenant"
# Endpoints of language models in metrics: those of tenants, and that of the deployment.
_HOSTS: Final = (OF_TENANT, completions.host_of(settings.LLM_POOL_URL))
_TOKENS: Final = ("prompt_tokens", "completion_tokens")
CALLS: Final = metrics.counter(
    "konstruct_model_calls_total",
    "Requests to the language model, with repeated ones, by outcome.",
    endpoint=_HOSTS,
    outcome=(
        *("done", "interrupted"),
        *(
            error.code
            for error in (
                completions.LLMUnavailable,
                completions.LLMTimeout,
                completions.LLMRefused,
                completions.LLMReplyInvalid,
            )
        ),
    ),
)
CALL_SECONDS: Final = metrics.histogram(
    "konstruct_model_call_seconds",
    "How long requests to the language model took, failed ones too.",
    endpoint=_HOSTS,
)
FIRST_TEXT_SECONDS: Final = metrics.histogram(
    "konstruct_model_first_text_seconds",
    "From a request to the first text of its answer, of answers that are streamed.",
    endpoint=_HOSTS,
)
TOKENS: Final = metrics.counter(
    "konstruct_model_tokens_total",
    "Tokens as the language model reports them.",
    endpoint=_HOSTS,
    kind=_TOKENS,
)
# The API by URL, from earlier answers, so that "auto" tries once in a process.
_known_apis: dict[str, str] = {}


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
    sleep: Callable[[float], None] = time.sleep
    shares: FairShares = field(default_factory=lambda: FairShares(sys.maxsize), compare=False)
    """The limit of parallel requests of this process to the server; by default none."""
    is_guarded: bool = False
    """Whether a tenant chose the URL: it reaches only public addresses and allowed hosts."""
    max_attempts: int | None = None
    """None: MAX_ATTEMPTS."""

    @property
    def host(self) -> str:
        """Host and port of the server, without credentials: the endpoint in metrics."""
        return OF_TENANT if self.is_guarded else completions.host_of(self.url)

    @release_connections()
    def complete(self, request: CompletionRequest, on_text: OnText | None = None) -> Completion:
        """Return the answer, after up to `max_attempts` attempts.

        Do not call it in a transaction: the thread returns its pooled database connections while it
        waits.

        Args:
            request: the prompt, tools and options.
            on_text: called with each piece of the text as it comes. It may use the database. Tool
                calls may follow the text. After the first piece there is no retry.

        Raises:
            LLMUnavailable: no connection, or a temporary error of the server.
            LLMTimeout: there was no answer within `timeout`.
            LLMRefused: the server refused the request.
            LLMReplyInvalid: the answer has neither text nor tool calls.
        """
        max_attempts = self.max_attempts or MAX_ATTEMPTS
        begun_at = started_at = time.monotonic()
        deadline = begun_at + self.timeout
        has_text = False

        def send(piece: str) -> None:
            nonlocal has_text
            if not has_text:
                FIRST_TEXT_SECONDS.of(endpoint=self.host).observe(time.monotonic() - started_at)
            has_text = True
            on_text(piece)  # type: ignore[misc]
            with release_connections():
                pass  # on_text may have taken some

        for attempt in range(1, max_attempts + 1):
            started_at, outcome = time.monotonic(), "interrupted"
            try:
                with (
                    traces.span(
                        "model",
                        traces.CLIENT,
                        tenant_id=current_tenant_id(),
                        endpoint=self.host,
                        attempt=attempt,
                    ),
                    # One of the tenant's slots for parallel requests.
                    self.shares.slot(
                        current_tenant_id() or NO_TENANT, seconds=max(0.0, deadline - started_at)
                    ) as has_slot,
                ):
                    if not has_slot:
                        raise self._timeout()
                    completion = self._ask(request, on_text and send, deadline, self.api)
                    usage = completion.usage or {}
                    tokens = {kind: usage[kind] for kind in _TOKENS if kind in usage}
                    traces.set_attributes(name=None, **tokens)
            except LLMError as error:
                outcome, error.requests = error.code, attempt
                pause = FIRST_PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(0.8, 1.2)  # noqa: S311
                pause = max(pause, error.retry_after or 0.0)
                seconds = time.monotonic() + pause - begun_at
                is_late = (
                    seconds > min(self.timeout, MAX_RETRY_SECONDS) or pause > MAX_PAUSE_SECONDS
                )
                if has_text or is_late or attempt == max_attempts or not error.is_retryable:
                    raise
                logger.warning("%s Trying again in %.1f s.", exceptions.detail_of(error), pause)
            else:
                outcome = "done"
                for kind, number in tokens.items():
                    TOKENS.of(endpoint=self.host, kind=kind).inc(number)
                return replace(completion, requests=attempt)
            finally:
                CALLS.of(endpoint=self.host, outcome=outcome).inc()
                CALL_SECONDS.of(endpoint=self.host).observe(time.monotonic() - started_at)
            self.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    @release_connections()
    def rerank(self, request: CompletionRequest) -> Completion:
        """Return an answer with the scores of texts for a query, after one request to `/rerank`.

        Do not call it in a transaction.

        Args:
            request: its first message is the query, and the others are the texts.

        Raises:
            LLMError: as of `complete`. LLMReplyInvalid: not every text has one score.
        """
        _client(os.getpid(), self.is_guarded)  # its import may take a second
        return self._ask(request, None, time.monotonic() + self.timeout, "rerank")

    def _ask(
        self, request: CompletionRequest, on_text: OnText | None, deadline: float, api: str
    ) -> Completion:
        if self.is_guarded:
            try:
                check_url(self.url)
            except AddressRefused as error:
                raise _refused_address(error) from error
        # Errors contain the address, and must not contain credentials.
        url, _ = completions.split_credentials(self.url)
        *others, last = completions.endpoints(url, api, known_api=_known_apis.get(url))
        for endpoint in (*others, last):
            try:
                data = self._read(endpoint, request, on_text, deadline)
                break
            except completions.LLMRefused as error:
                if endpoint is last or error.status not in UNKNOWN_PATH_STATUSES:
                    raise
        if endpoint.api == "rerank":
            return completions.read_scores(data, len(request.messages) - 1)
        if api == "auto":
            _known_apis[url] = endpoint.api
        try:
            completion = completions.read_completion(data, with_calls=request.accepts_calls)
        except completions.LLMReplyInvalid as error:
            error.detail = f"The server sent {self._excerpt(request, str(data))!r}. {error.detail}"
            raise
        if len(completion.text) > MAX_REPLY_CHARACTERS:
            raise completions.LLMReplyTooLong(
                f"{len(completion.text):,} characters", MAX_REPLY_CHARACTERS
            )
        return completion

    def _read(
        self,
        endpoint: Endpoint,
        request: CompletionRequest,
        on_text: OnText | None,
        deadline: float,
    ) -> Any:
        """Return the JSON of the answer; of a stream, in the format of a response without one."""
        payload = endpoint.payload(
            request, default_model=self.default_model, stream=on_text is not None
        )
        streamed = completions.StreamedAnswer(on_text or (lambda piece: None), MAX_REPLY_CHARACTERS)
        with closing(self._events(endpoint, request, payload, deadline)) as events:
            # Errors of on_text are not converted: they are raised here.
            for is_event, data in events:
                if not is_event:
                    return data
                streamed.add(data)
        return streamed.document()

    def _events(
        self, endpoint: Endpoint, request: CompletionRequest, payload: Any, deadline: float
    ) -> Generator[tuple[bool, Any]]:
        """Yield (True, event) for the events of a stream; of another response (False, its JSON)."""
        import openai

        _, credentials = completions.split_credentials(self.url)
        authorization: str | openai.Omit = f"Bearer {self.key}" if self.key else openai.Omit()
        if credentials:
            authorization = f"Basic {b64encode(credentials.encode()).decode()}"
        connect_by = min(deadline, time.monotonic() + CONNECT_SECONDS)
        try:
            with _client(os.getpid(), self.is_guarded).post(
                endpoint.url,
                body=payload,
                options={
                    "headers": {"Authorization": authorization},
                    "timeout": httpx.Timeout(deadline, connect=connect_by),
                },
                cast_to=object,
                stream=True,
                stream_cls=openai.Stream[Any],
            ) as stream:
                body: AnswerBody = stream.response.extensions["body"]
                if "stream" not in payload or not body.is_event_stream:
                    yield False, json.loads(stream.response.read())
                    return
                for data in body.events():
                    if data == completions.DONE.encode():
                        yield True, completions.DONE
                        return
                    event = json.loads(data)
                    if isinstance(event, dict) and (error := event.get("error")):
                        raise completions.LLMUnavailable(
                            "The language model's answer broke off.",
                            detail=f"{endpoint.url} sent {self._excerpt(request, str(error))!r}.",
                        )
                    yield True, event
        except openai.APIStatusError as error:
            raise self._status_error(endpoint, request, error.response) from None
        except (
            *(openai.APIConnectionError, httpcore.TimeoutException),
            *(httpcore.NetworkError, httpcore.ProtocolError),
        ) as error:
            if isinstance(error.__cause__, AddressRefused):
                raise _refused_address(error.__cause__) from None
            if time.monotonic() >= deadline:
                raise self._timeout() from None
            reason = self._excerpt(request, str(error.__cause__ or error))
            raise completions.LLMUnavailable(
                "The language model cannot be reached.",
                detail=f"{endpoint.url}: {reason}. Is {self._setting} right, and is it running?",
            ) from None
        except (ValueError, RecursionError) as error:
            excerpt = self._excerpt(request, getattr(error, "doc", "") or "no UTF-8")
            raise completions.LLMReplyInvalid(
                "The language model's answer cannot be read: it is not JSON.",
                detail=f"{endpoint.url} answered {excerpt!r}.",
            ) from None

    def _status_error(
        self, endpoint: Endpoint, request: CompletionRequest, answer: httpx.Response
    ) -> LLMError:
        status = answer.status_code
        excerpt = self._excerpt(request, answer.content.decode("utf-8", "replace"))
        detail = f"{endpoint.url} answered {status}: {excerpt!r}."
        if status in RETRIED_STATUSES:
            return completions.LLMUnavailable(
                f"The language model is not available now (HTTP {status}).",
                retry_after=completions.retry_after_seconds(answer.headers.get("Retry-After")),
                detail=detail,
            )
        remedy = "its key" if status in (401, 403) else "the agent's model"
        return completions.LLMRefused(
            f"The language model refused the request (HTTP {status}). Check {remedy}.",
            status=status,
            detail=f"{detail} Check {self._setting}, its API and key, and the agent's model.",
        )

    def _excerpt(self, request: CompletionRequest, text: str) -> str:
        """Return the beginning of a server's text, without words of the prompt and the key."""
        return request.excerpt(text.replace(self.key, redaction.HIDDEN) if self.key else text)

    @property
    def _setting(self) -> str:
        return "the address of the tenant's language model" if self.is_guarded else "LLM_POOL_URL"

    def _timeout(self) -> completions.LLMTimeout:
        return completions.LLMTimeout(
            f"The language model did not answer within {round(self.timeout, 2):g} seconds.",
            detail=f"{completions.split_credentials(self.url)[0]} was asked. Raise LLM_TIMEOUT if"
            " it needs longer, or LLM_MAX_CONCURRENT if it may be asked more at once.",
        )


def language_model(timeout: float | None = None) -> HttpLanguageModel | responder.BuiltInResponder:
    """Return the language model of the settings: by URL, or the built-in responder.

    Args:
        timeout: seconds for an answer, at most those of LLM_TIMEOUT.
    """
    if not settings.LLM_POOL_URL:
        return responder.BuiltInResponder()
    return HttpLanguageModel(
        url=settings.LLM_POOL_URL,
        api=settings.LLM_API,
        key=settings.LLM_API_KEY,
        default_model=settings.LLM_MODEL,
        timeout=settings.LLM_TIMEOUT if timeout is None else min(timeout, settings.LLM_TIMEOUT),
        shares=_shares(settings.LLM_POOL_URL, settings.LLM_MAX_CONCURRENT),
    )


@Once
def _shares(url: str, max_concurrent: int) -> FairShares:
    """Return the limit of parallel requests of this process to the server; 0: none."""
    return FairShares(max_concurrent or sys.maxsize, max_concurrent // 10)


def _refused_address(error: AddressRefused) -> completions.LLMRefused:
    return completions.LLMRefused(f"The language model's address is refused: {error}")


@Once
def _client(process_id: int, is_guarded: bool) -> "openai.OpenAI":
    """Return a client of this process, which is created on first use. Threads share it.

    The import takes a second and 25 MB. A forked process creates its own.
    """
    import openai

    # Each request has its key and its address. Without these two arguments, the SDK would read
    # environment variables.
    return openai.OpenAI(
        api_key="unused",
        base_url="http://unused",
        max_retries=0,
        http_client=httpx.Client(transport=Transport(is_guarded=is_guarded)),
    )


# --- Transport ----------------------------------------------------------------------------------


class Transport(httpx.BaseTransport):
    """Sends the requests of an `httpx.Client`. Their timeouts are times of `time.monotonic`.

    The proxies are those of the environment, as httpx has them.

    Args:
        is_guarded: connect only to public addresses and allowed hosts, and without a proxy.
    """

    def __init__(self, *, is_guarded: bool = False) -> None:
        options: dict[str, Any] = {
            "ssl_context": httpx.create_ssl_context(),
            "max_connections": None,
            "max_keepalive_connections": 20,
            "keepalive_expiry": 5.0,
            "network_backend": PublicNetwork() if is_guarded else Network(),
        }
        self._pools = {"": httpcore.ConnectionPool(**options)}
        proxies = {} if is_guarded else urllib.request.getproxies()
        for scheme, url in proxies.items():
            if scheme in ("http", "https"):
                proxy = httpx.Proxy(url if "://" in url else f"http://{url}")
                self._pools[scheme] = httpcore.HTTPProxy(
                    str(proxy.url), proxy_auth=proxy.raw_auth, **options
                )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Its answer has an `AnswerBody`, as the extension `body` too."""
        is_direct = urllib.request.proxy_bypass(request.url.host)
        pool = self._pools.get("" if is_direct else request.url.scheme, self._pools[""])
        headers = [(n, request.headers[n]) for n in SENT_HEADERS if n in request.headers]
        answer = pool.handle_request(
            httpcore.Request(
                request.method,
                str(request.url),
                headers=[*headers, ("Accept-Encoding", "identity")],
                content=request.stream,
                extensions=request.extensions,
            )
        )
        answer_headers = httpx.Headers(answer.headers)
        # No compression is requested. A compressed answer would have no limit after decompression.
        answer_headers.pop("content-encoding", None)
        is_event_stream = answer_headers.get("content-type", "").startswith("text/event-stream")
        body = AnswerBody(answer, is_event_stream)
        return httpx.Response(
            answer.status, headers=answer_headers, stream=body, extensions={"body": body}
        )

    def close(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            pool.close()


class AnswerBody(httpx.SyncByteStream):
    """A body that raises LLMReplyTooLong after the maximum number of bytes."""

    def __init__(self, answer: httpcore.Response, is_event_stream: bool) -> None:
        self._answer, self.is_event_stream = answer, is_event_stream

    def __iter__(self) -> Iterator[bytes]:
        size = BYTES_PER_STREAMED_CHARACTER if self.is_event_stream else BYTES_PER_CHARACTER
        max_bytes, count = size * MAX_REPLY_CHARACTERS + OVERHEAD_BYTES, 0
        for chunk in self._answer.iter_stream():
            count += len(chunk)
            if count > max_bytes:
                raise completions.LLMReplyTooLong(
                    f"more than {max_bytes:,} bytes", MAX_REPLY_CHARACTERS
                )
            yield chunk

    def events(self) -> Iterator[bytes]:
        """Yield the data of the events of OpenAI's API, each of which is one line.

        The time is linear. That of the SDK's decoder is quadratic in the size of an event.
        """
        parts: list[bytes] = []
        for chunk in chain(self, (b"\n",)):
            *ends, begin = chunk.split(b"\n")
            for end in ends:
                line = b"".join((*parts, end)).strip()
                parts.clear()
                if line.startswith(b"data:"):
                    yield line.removeprefix(b"data:").lstrip()
            parts.append(begin)

    def close(self) -> None:
        """Close the answer, and its connection if the body was not read to its end."""
        self._answer.close()
