"""Responses: from Django's responses to the messages that an ASGI server sends.

A streamed response is made by one thread as fast as it can, and sent as fast as the client reads. A
thread that made each piece when the client had read the piece before would belong to the slowest
client. The thread writes to a temporary file, and the event loop sends the file.
"""

import asyncio
import itertools
import os
import tempfile
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import IO, Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

from konstruct.api.http.problems import Problem, problem_response, takes_keys
from konstruct.orchestrator.replies.reply_wait import DeferredResponse, StreamingResponse

Send = Callable[[dict[str, Any]], Awaitable[None]]

# A body up to this size is sent at once, without a file.
MAX_WHOLE_BYTES = 1024 * 1024
PIECE_BYTES = 64 * 1024

_gzip = GZipMiddleware(lambda request: HttpResponse())


@dataclass(frozen=True)
class Answer:
    """A response as it is sent: with its body, or with the pieces of its body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    pieces: AsyncGenerator[bytes] | None = None
    outage: str = ""
    """The reason of a 503, for the access log."""
    deferred: DeferredResponse | None = None
    """The wait before the answer is sent."""
    complete: Callable[[], "Answer"] | None = None
    """Makes the answer after the wait, in a thread."""
    streaming: StreamingResponse | None = None
    """The body that the handler streams while a message waits for its reply."""

    async def send(self, send: Send, *, close: bool) -> None:
        """Send the answer.

        Args:
            send: ASGI's send.
            close: whether to close the connection, because it has data that was not read.
        """
        headers = [*self.headers, (b"Connection", b"close")] if close else self.headers
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if self.pieces is not None:
            async with aclosing(self.pieces) as pieces:
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
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


def answer_of(request: HttpRequest, response: HttpResponse) -> Answer:
    """Return the answer of a response that has its body."""
    streaming: StreamingResponse | None = getattr(response, "stream", None)
    if streaming is not None:
        del response.headers["Content-Length"]  # of the opening only
    deferred: DeferredResponse | None = getattr(response, "deferred", None)
    complete = None if deferred is None else lambda: _completed(request, response, deferred)
    return Answer(
        response.status_code,
        headers_of(response),
        response.content,
        outage=getattr(request, "outage", ""),
        deferred=deferred,
        complete=complete,
        streaming=streaming,
    )


def _completed(request: HttpRequest, response: HttpResponse, deferred: DeferredResponse) -> Answer:
    """Return the answer after the wait. The middleware ran before, and gzip runs again."""
    deferred.finish()
    del response.deferred  # type: ignore[attr-defined]
    del response.headers["Content-Encoding"]
    response.headers["Content-Length"] = str(len(response.content))
    _gzip.process_response(request, response)
    return answer_of(request, response)


def refusal(request: HttpRequest, problem: Problem) -> Answer:
    """Return the answer to a request that Django does not see, in the format of its path."""
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


class CutShort(Exception):
    """The writer of a stream has failed."""


def whole_body(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes] | None]:
    """Return a short body and None, or b"" and an iterator over all of a long body."""
    read: list[bytes] = []
    size = 0
    for piece in pieces:
        read.append(piece)
        size += len(piece)
        if size > MAX_WHOLE_BYTES:
            return b"", itertools.chain(read, pieces)
    return b"".join(read), None


class Stream:
    """A body that a thread writes and the event loop reads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._news = asyncio.Event()
        self._size = 0
        self._ended = False
        self._failed = False
        self._given_up = False
        self._file: IO[bytes] | None = None
        self._sides_left = 0
        self._leaving = threading.Lock()

    def write(self, pieces: Iterator[bytes]) -> None:
        """Write the pieces, until the end or until the reader gives up."""
        try:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by the side that is last)
            for piece in pieces:
                if self._given_up:
                    break
                self._file.write(piece)
                self._file.flush()
                self._loop.call_soon_threadsafe(self._grown, len(piece))
        except BaseException:
            self._failed = True
            raise
        finally:
            self._loop.call_soon_threadsafe(self._end)
            self._leave()

    async def read(self) -> AsyncGenerator[bytes]:
        """Yield the pieces as they are written. Raises CutShort if the writer fails."""
        offset = 0
        # Ends: when the writer ends or fails. It waits for news between two turns.
        while True:
            while self._file is not None and offset < self._size:
                piece = os.pread(self._file.fileno(), PIECE_BYTES, offset)
                offset += len(piece)
                yield piece
            if self._ended and self._failed:
                raise CutShort
            if self._ended:
                return
            self._news.clear()
            await self._news.wait()

    def give_up(self) -> None:
        """Stop reading; then the writer stops too."""
        self._given_up = True
        self._leave()

    def _leave(self) -> None:
        """Close the file when both sides have left it."""
        with self._leaving:
            self._sides_left += 1
            if self._sides_left == 2 and self._file is not None:
                self._file.close()

    def _grown(self, size: int) -> None:
        self._size += size
        self._news.set()

    def _end(self) -> None:
        self._ended = True
        self._news.set()
