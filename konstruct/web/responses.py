"""Responses: from Django's responses to the messages that an ASGI server sends.

A thread writes a streamed response to a temporary file, and the event loop sends the file as fast
as the client reads. A thread that sent the response itself would wait for the slowest client.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import IO, Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

from konstruct.api.http.problems import Problem, accepts_api_keys, problem_response
from konstruct.orchestrator.replies.reply_wait import DeferredResponse, StreamingResponse

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
