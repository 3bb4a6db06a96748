"""Requests on real sockets, by the server as deployed: malformed ones are refused."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import uvicorn

from konstruct.web.application import Application
from konstruct.web.worker import Worker


class Serving:
    """The product in a uvicorn server with the worker's settings, in this event loop."""

    async def __aenter__(self) -> "Serving":
        options = {**Worker.CONFIG_KWARGS, "lifespan": "off", "backlog": 100}
        config = uvicorn.Config(Application(), port=0, log_config=None, **options)
        self.server = uvicorn.Server(config)
        self.server.capture_signals = lambda: _nothing()  # type: ignore[method-assign]
        self._task = asyncio.create_task(self.server.serve())
        while not self.server.started:
            await asyncio.sleep(0.005)
        (self.port,) = (socket.getsockname()[1] for socket in self.server.servers[0].sockets)
        return self

    async def __aexit__(self, *error: object) -> None:
        self.server.should_exit = True
        await self._task

    async def open(self, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**12)
        writer.write(sent)
        return reader, writer


class _nothing:  # noqa: N801 (a context manager that does nothing)
    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


HIDDEN = b"GET /health/live HTTP/1.1\r\nHost: hidden\r\n\r\n"
CHUNKS = b"0\r\n\r\n" + HIDDEN
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def lengths(*values: bytes) -> bytes:
    return b"".join(b"Content-Length: %b\r\n" % value for value in values)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (lengths(b"5", b"6"), HIDDEN),
        (lengths(b"5, 6"), HIDDEN),
        (lengths(b"+5"), HIDDEN),
        (lengths(b"-5"), HIDDEN),
        (lengths(b"0x5"), HIDDEN),
        (lengths(b"5_0"), HIDDEN),
        (lengths(b"\xb2"), HIDDEN),
        (lengths(b"9" * 30), HIDDEN),
        (lengths(b""), HIDDEN),
        # Codings that only one side reads as chunked.
        (CHUNKED + CHUNKED, CHUNKS),
        (b"Transfer-Encoding: chunked, chunked\r\n", CHUNKS),
        (b"Transfer-Encoding: gzip, chunked\r\n", CHUNKS),
        (b"Transfer-Encoding: identity\r\n", CHUNKS),
        (b"Transfer-Encoding: xchunked\r\n", CHUNKS),
        (b"Transfer-Encoding: chunked;q=1\r\n", CHUNKS),
        (b"Transfer-Encoding: \x0bchunked\r\n", CHUNKS),
        (b"Transfer-Encoding : chunked\r\n", CHUNKS),
        # Chunks with different ends for the two sides.
        (CHUNKED, b"g\r\n" + CHUNKS),
        (CHUNKED, b"-1\r\n" + CHUNKS),
        (CHUNKED, b"0x0\r\n\r\n" + HIDDEN),
        (CHUNKED, b" 0\r\n\r\n" + HIDDEN),
        (CHUNKED, b"0" * 25 + b"\r\n\r\n" + HIDDEN),
        (CHUNKED, b"\r\n" + CHUNKS),
        (CHUNKED, b"1\r\nab\r\n" + CHUNKS),
    ],
)
def test_body_with_ambiguous_length_is_refused_and_closes_the_connection(
    headers: bytes, body: bytes
) -> None:
    async def test() -> None:
        async with Serving() as server:
            for path in (b"/health/live", b"/api/v1/messages/"):
                await refused(server, path)

    async def refused(server: Serving, path: bytes) -> None:
        sent = b"POST %b HTTP/1.1\r\nHost: localhost\r\n%b\r\n%b"
        reader, writer = await server.open(sent % (path, headers, body))
        received = await reader.read()
        writer.close()
        assert received.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ")), received
        assert received.count(b"HTTP/1.1 ") == 1
        assert b"connection: close" in received.lower()

    run(test())


def test_a_body_without_credentials_is_refused_before_it_is_sent() -> None:
    async def test() -> None:
        async with Serving() as server:
            length = 3_000_000
            start = b"POST /api/v1/messages/ HTTP/1.1\r\nHost: localhost\r\n"
            reader, writer = await server.open(start + lengths(b"%d" % length) + b"\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
            # The connection is usable after it.
            writer.write(b"x" * length + HIDDEN)
            answered = await reader.readuntil(b"HTTP/1.1 200 ")
            assert b"connection: close" not in answered.lower()
            writer.close()

    run(test())
