"""Requests in the event loop, before Django sees them: scopes, and bodies of limited size."""

import asyncio
import tempfile
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import unquote_to_bytes

from django.core.handlers.asgi import ASGIRequest
from django.utils.encoding import repercent_broken_unicode

from konstruct.web.pool import Share

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
