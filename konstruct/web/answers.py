"""From Django's responses to what an ASGI server sends."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

from konstruct.api.http.errors.addresses import problem_response, takes_keys
from konstruct.api.http.errors.problems import Problem
from konstruct.orchestrator.replies.reply_wait import Live, Waiting

Send = Callable[[dict[str, Any]], Awaitable[None]]

_gzip = GZipMiddleware(lambda request: HttpResponse())


class Pieces(Protocol):
    """A body that comes in pieces."""

    def read(self) -> AsyncGenerator[bytes]:
        """Yield the pieces as they come."""
        ...


@dataclass(frozen=True)
class Answer:
    """A response as it is sent: its body, or the stream that has it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    stream: Pieces | None = None
    # What the response waits for before it is complete, and what then makes the complete one.
    waiting: Waiting | None = None
    complete: Callable[[], "Answer"] | None = None
    # What is sent while the response waits, of which the handler makes a stream.
    live: Live | None = None
    outage: str = ""
    """Why the request was refused with 503, for its line in the log."""

    async def send(self, send: Send, *, close: bool) -> None:
        """Send it. `close` ends the connection: there is something on it that was not read."""
        headers = [*self.headers, (b"Connection", b"close")] if close else self.headers
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if self.stream is not None:
            async with aclosing(self.stream.read()) as pieces:
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


def headers_of(response: HttpResponseBase) -> list[tuple[bytes, bytes]]:
    """The headers and cookies of a response."""
    headers = [
        (name.encode("ascii"), value.encode("latin-1")) for name, value in response.headers.items()
    ]
    cookies = [
        (b"Set-Cookie", cookie.output(header="").strip().encode("ascii"))
        for cookie in response.cookies.values()
    ]
    return headers + cookies


def answer_of(request: HttpRequest, response: HttpResponse) -> Answer:
    """A response that has its body, and may wait for a better one."""
    live: Live | None = getattr(response, "live", None)
    if live is not None:
        del response.headers["Content-Length"]  # of what is no more than the beginning
    waiting: Waiting | None = getattr(response, "waiting", None)
    complete = None if waiting is None else lambda: _completed(request, response, waiting)
    return Answer(
        response.status_code,
        headers_of(response),
        response.content,
        waiting=waiting,
        complete=complete,
        live=live,
        outage=getattr(request, "outage", ""),
    )


def _completed(request: HttpRequest, response: HttpResponse, waiting: Waiting) -> Answer:
    """The answer after the wait. The response has been through all middleware; what concerns its
    body is done again.
    """
    waiting.finish()
    del response.headers["Content-Encoding"]
    response.headers["Content-Length"] = str(len(response.content))
    _gzip.process_response(request, response)
    outage = getattr(request, "outage", "")
    return Answer(response.status_code, headers_of(response), response.content, outage=outage)


def refusal(request: HttpRequest, problem: Problem) -> Answer:
    """An answer to what Django does not get to see, in the form of its address."""
    if takes_keys(request.path):
        response = problem_response(request, problem)
    else:
        response = HttpResponse(
            f"{problem.detail}\n",
            status=problem.status,
            content_type="text/plain; charset=utf-8",
            headers=dict(problem.headers),
        )
    response.headers["Content-Length"] = str(len(response.content))
    return answer_of(request, response)
