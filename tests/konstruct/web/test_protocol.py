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


def test_other_versions_of_http_get_one_answer() -> None:
    async def test() -> None:
        async with Serving() as server:
            for start in (b"PRI * HTTP/2.0", b"GET / HTTP/2.0", b"GET / HTTP/0.9"):
                reader, writer = await server.open(start + b"\r\nHost: x\r\n\r\nSM\r\n\r\n")
                answer = await reader.read()
                assert (answer.count(b"HTTP/1.1 "), answer[:12]) == (1, b"HTTP/1.1 400")
                writer.close()

    run(test())


HIDDEN = b"GET /health/live HTTP/1.1\r\nHost: hidden\r\n\r\n"
CHUNKS = b"0\r\n\r\n" + HIDDEN
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def lengths(*values: bytes) -> bytes:
    return b"".join(b"Content-Length: %b\r\n" % value for value in values)


@pytest.mark.parametrize(
    ("version", "headers", "body"),
    [
        # Two lengths of one body: a proxy in front may parse other requests than this server.
        (b"1.1", lengths(b"5") + CHUNKED, CHUNKS),
        (b"1.1", CHUNKED + lengths(b"%d" % len(CHUNKS)), CHUNKS),
        (b"1.1", lengths(b"0") + CHUNKED, CHUNKS),
        (b"1.1", b"content-length: 5\r\ntransfer-encoding: CHUNKED\r\n", CHUNKS),
        (b"1.0", CHUNKED, CHUNKS),
        (b"1.1", lengths(b"5", b"6"), HIDDEN),
        (b"1.1", lengths(b"5, 6"), HIDDEN),
        (b"1.1", lengths(b"+5"), HIDDEN),
        (b"1.1", lengths(b"-5"), HIDDEN),
        (b"1.1", lengths(b"0x5"), HIDDEN),
        (b"1.1", lengths(b"5_0"), HIDDEN),
        (b"1.1", lengths(b"\xb2"), HIDDEN),
        (b"1.1", lengths(b"9" * 30), HIDDEN),
        (b"1.1", lengths(b""), HIDDEN),
        # Codings that only one side reads as chunked.
        (b"1.1", CHUNKED + CHUNKED, CHUNKS),
        (b"1.1", b"Transfer-Encoding: chunked, chunked\r\n", CHUNKS),
        (b"1.1", b"Transfer-Encoding: gzip, chunked\r\n", CHUNKS),
        (b"1.1", b"Transfer-Encoding: identity\r\n", CHUNKS),
        (b"1.1", b"Transfer-Encoding: xchunked\r\n", CHUNKS),
        (b"1.1", b"Transfer-Encoding: chunked;q=1\r\n", CHUNKS),
        (b"1.1", b"Transfer-Encoding: \x0bchunked\r\n", CHUNKS),
        (b"1.1", b"Transfer-Encoding : chunked\r\n", CHUNKS),
        # Chunks with different ends for the two sides.
        (b"1.1", CHUNKED, b"g\r\n" + CHUNKS),
        (b"1.1", CHUNKED, b"-1\r\n" + CHUNKS),
        (b"1.1", CHUNKED, b"0x0\r\n\r\n" + HIDDEN),
        (b"1.1", CHUNKED, b" 0\r\n\r\n" + HIDDEN),
        (b"1.1", CHUNKED, b"0" * 25 + b"\r\n\r\n" + HIDDEN),
        (b"1.1", CHUNKED, b"\r\n" + CHUNKS),
        (b"1.1", CHUNKED, b"1\r\nab\r\n" + CHUNKS),
    ],
)
def test_body_with_ambiguous_length_is_refused_and_closes_the_connection(
    version: bytes, headers: bytes, body: bytes
) -> None:
    async def test() -> None:
        async with Serving() as server:
            for path in (b"/health/live", b"/api/v1/messages/"):
                await refused(server, path)

    async def refused(server: Serving, path: bytes) -> None:
        sent = b"POST %b HTTP/%b\r\nHost: localhost\r\n%b\r\n%b"
        reader, writer = await server.open(sent % (path, version, headers, body))
        received = await reader.read()
        writer.close()
        assert received.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ")), received
        assert received.count(b"HTTP/1.1 ") == 1
        assert b"connection: close" in received.lower()

    run(test())
