"""Responses: from Django's responses to the messages that an ASGI server sends.

A thread writes a streamed response to a temporary file, and the event loop sends the file as fast
as the client reads. A thread that sent the response itself would wait for the slowest client.
"""

import asyncio
import tempfile
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import unquote_to_bytes

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.encoding import repercent_broken_unicode

from konstruct.api.http.problems import Problem, accepts_api_keys, problem_response
from konstruct.orchestrator.replies.reply_wait import DeferredResponse, StreamingResponse
from konstruct.web.pool import Share

Send = Callable[[dict[str, Any]], Awaitable[None]]

CHUNK_BYTES = 64 * 1024

_gzip = GZipMiddleware(lambda request: HttpResponse())


@dataclass(frozen=True)
class AsgiResponse:
    """A response to send, with its body or with chunks of its body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    chunks: AsyncGenerator[bytes] | None = None
    outage: str = ""
    """The reason of a 503, for the access log."""
    deferred: DeferredResponse | None = None
    """The wait before the response is sent."""
    complete: Callable[[], "AsgiResponse"] | None = None
    """Makes the response after the wait. Call it in a thread."""
    streaming: StreamingResponse | None = None
    """The body that the handler streams while a message waits for its reply."""

    async def send(self, send: Send, *, close: bool) -> None:
        """Send the response.

        Args:
            send: ASGI's send.
            close: whether to close the connection, because it has unread data.
        """
        headers = [*self.headers, (b"Connection", b"close")] if close else self.headers
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if self.chunks is not None:
            async with aclosing(self.chunks) as chunks:
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


def headers_of(response: HttpResponseBase) -> list[tuple[bytes, bytes]]:
    """Return the headers and cookies of a response."""
    headers = [
        (name.encode("ascii"), value.encode("latin-1")) for name, value in response.headers.items()
    ]
    cookies = [
        (b"Set-Cookie", cookie.output(header="").strip().encode("ascii"))
        for cookie in response.cookies.values()
    ]
    return headers + cookies


def asgi_response(request: HttpRequest, response: HttpResponse) -> AsgiResponse:
    """Convert a response of Django that is not streamed."""
    streaming: StreamingResponse | None = getattr(response, "stream", None)
    if streaming is not None:
        del response.headers["Content-Length"]  # of the opening only
    deferred: DeferredResponse | None = getattr(response, "deferred", None)
    complete = None if deferred is None else lambda: _completed(request, response, deferred)
    return AsgiResponse(
        response.status_code,
        headers_of(response),
        response.content,
        outage=getattr(request, "outage", ""),
        deferred=deferred,
        complete=complete,
        streaming=streaming,
    )


def _completed(
    request: HttpRequest, response: HttpResponse, deferred: DeferredResponse
) -> AsgiResponse:
    """Return the response after the wait. The middleware ran before; only gzip runs again."""
    deferred.finish()
    del response.deferred  # type: ignore[attr-defined]
    del response.headers["Content-Encoding"]
    response.headers["Content-Length"] = str(len(response.content))
    _gzip.process_response(request, response)
    return asgi_response(request, response)


def asgi_problem_response(request: HttpRequest, problem: Problem) -> AsgiResponse:
    """Return an error for a request that Django does not see, in the error format of its path."""
    if accepts_api_keys(request.path):
        response = problem_response(request, problem)
    else:
        response = HttpResponse(
            f"{problem.detail}\n",
            status=problem.status,
            content_type="text/plain; charset=utf-8",
            headers=dict(problem.headers),
        )
    response.headers["Content-Length"] = str(len(response.content))
    return asgi_response(request, response)


async def file_chunks(file: IO[bytes]) -> AsyncGenerator[bytes]:
    """Yield the content of a file, and close the file."""
    with file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]

# Larger bodies are stored in temporary files.
MAX_BYTES_IN_MEMORY = 64 * 1024
# A body that is too large is read and discarded up to this many times the limit: a client that
# still sends when the connection is closed may not see the response.
MAX_DISCARDED_BODIES = 4


class ClientDisconnected(Exception):
    """The client has closed the connection."""


class BodyTooSlow(Exception):
    """The body did not arrive in time."""


@dataclass
class Body:
    """The body of a request."""

    file: IO[bytes]
    """The body, up to the limit."""
    length: int
    """The number of bytes: the Content-Length, or the bytes that were read."""
    is_complete: bool
    """Whether the whole body was read from the connection."""


class Request(ASGIRequest):
    """A request with a response that may be deferred or streamed, see replies/reply_wait.py."""

    waits_in_event_loop = True
    share: Share

    def __init__(self, scope: Scope, body: Body) -> None:
        super().__init__(scope, body.file)
        self._claimed = threading.Lock()
        # Django refuses a body that is too large by this header, which the client may not send.
        self.META["CONTENT_LENGTH"] = str(body.length) if body.length else ""

    def claim_body(self) -> bool:
        """Return True for the first caller only, which then has to close the body."""
        return self._claimed.acquire(blocking=False)


async def read_body(
    receive: Receive, *, declared_length: int | None, max_bytes: int, timeout_seconds: float
) -> Body:
    """Read the body into a file, which the caller closes.

    Args:
        receive: ASGI's receive.
        declared_length: the Content-Length, if there is one.
        max_bytes: the file has at most this many bytes.
        timeout_seconds: the time for the whole body.

    Raises:
        ClientGone: the client has closed the connection.
        BodyTooSlow: the body did not arrive in time.
    """
    file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=MAX_BYTES_IN_MEMORY)  # noqa: SIM115
    body = Body(file, declared_length or 0, is_complete=False)
    if body.length > MAX_DISCARDED_BODIES * max_bytes:
        return body
    try:
        async with asyncio.timeout(timeout_seconds):
            await _receive_body(body, receive, max_bytes)
    except TimeoutError as error:
        file.close()
        raise BodyTooSlow from error
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return body


async def _receive_body(body: Body, receive: Receive, max_bytes: int) -> None:
    body.length = 0
    while body.length <= MAX_DISCARDED_BODIES * max_bytes:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        chunk = message.get("body", b"")
        body.length += len(chunk)
        if body.length <= max_bytes:
            body.file.write(chunk)
        if not message.get("more_body", False):
            body.is_complete = True
            return


def path_of(scope: Scope) -> str:
    """Return the path as Django reads it under WSGI: invalid UTF-8 stays percent-encoded."""
    return repercent_broken_unicode(unquote_to_bytes(scope["raw_path"])).decode()


def content_length(scope: Scope) -> int | None:
    """Return the Content-Length, which h11 has checked to be a number, or None."""
    values = (value for name, value in scope["headers"] if name == b"content-length")
    value = next(values, b"").decode("latin-1")
    return int(value) if value.isdigit() else None


def has_ambiguous_length(scope: Scope) -> bool:
    """Return whether the end of the body is ambiguous, which RFC 9112 refuses (6.1, 6.3).

    It is ambiguous with both Content-Length and Transfer-Encoding, and with Transfer-Encoding in
    HTTP/1.0: a proxy and this server may read different requests. h11 refuses other errors, such as
    two lengths.
    """
    names = {name for name, _ in scope["headers"]}
    return b"transfer-encoding" in names and (
        b"content-length" in names or scope.get("http_version") == "1.0"
    )
