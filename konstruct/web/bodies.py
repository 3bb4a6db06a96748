"""Reading a request's body in the event loop: its size and its time are limited, whoever sends."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import IO, Any

Receive = Callable[[], Awaitable[dict[str, Any]]]

# What is larger waits on disk, so that many uploads at once do not take the memory.
IN_MEMORY = 64 * 1024
# Of a body that is too large this many times the limit is read and thrown away: a client that is
# still sending when the connection is closed may not see the answer.
THROWN_AWAY = 4


class ClientGone(Exception):
    """The client has closed the connection."""


class BodyTooSlow(Exception):
    """The body did not arrive in time."""


@dataclass
class Body:
    """A request's body.

    `length` is what was announced or read. Where it is beyond the limit, `file` is not all of it.
    `read_to_end` is whether nothing of it is left on the connection.
    """

    file: IO[bytes]
    length: int
    read_to_end: bool


async def read_body(
    receive: Receive, *, announced: int | None, most_bytes: int, seconds: float
) -> Body:
    """Read the body into a file that its reader closes, and no more of it than the limit.

    Raises:
        ClientGone: the client has closed the connection.
        BodyTooSlow: it took longer than so many seconds.
    """
    file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
    body = Body(file, announced or 0, read_to_end=False)
    if body.length > THROWN_AWAY * most_bytes:
        return body
    try:
        async with asyncio.timeout(seconds):
            await _fill(body, receive, most_bytes)
    except TimeoutError as error:
        file.close()
        raise BodyTooSlow from error
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return body


async def _fill(body: Body, receive: Receive, most_bytes: int) -> None:
    body.length = 0
    while body.length <= THROWN_AWAY * most_bytes:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece = message.get("body", b"")
        body.length += len(piece)
        if body.length <= most_bytes:
            body.file.write(piece)
        if not message.get("more_body", False):
            body.read_to_end = True
            return
