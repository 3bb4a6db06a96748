"""Connections without progress, on real sockets: they are closed."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import uvicorn

from konstruct.web import protocol
from konstruct.web.protocol import Protocol

HUGE = 64 * 1024 * 1024
CLOSED = (b"", ConnectionResetError)


async def application(scope: Any, receive: Any, send: Any) -> None:
    length = HUGE if scope["path"] == "/huge" else 2
    headers = [(b"content-length", str(length).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"x" * length})


class Serving:
    """A uvicorn server with our connections, in this event loop."""

    async def __aenter__(self) -> "Serving":
        config = uvicorn.Config(
            application,
            http=Protocol,
            port=0,
            lifespan="off",
            log_config=None,
            ws="none",
            timeout_keep_alive=1,
        )
        self.server = uvicorn.Server(config)
        self.server.capture_signals = lambda: _nothing()  # type: ignore[method-assign]
        self._task = asyncio.create_task(self.server.serve())
        while not self.server.started:
            await asyncio.sleep(0.005)
        (self.port,) = (each.getsockname()[1] for each in self.server.servers[0].sockets)
        return self

    async def __aexit__(self, *error: object) -> None:
        self.server.should_exit = True
        await self._task

    async def open(self, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**12)
        writer.write(sent)
        return reader, writer

    async def until_no_connections(self) -> None:
        while self.server.server_state.connections:
            await asyncio.sleep(0.005)


class _nothing:  # noqa: N801 (a context manager that does nothing)
    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent", [b"", b"GET / HTT", b"GET / HTTP/1.1\r\nX-Half: ", b"\r\n", GET + b"GET / H"]
)
def test_headers_must_come_in_time(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.1)

    async def test() -> None:
        async with Serving() as server:
            _, writer = await server.open(sent)
            await server.until_no_connections()
            writer.close()

    run(test())


def test_headers_that_come_bit_by_bit_gain_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.3)

    async def test() -> None:
        async with Serving() as server:
            reader, writer = await server.open(b"GET / HTTP/1.1\r\n")
            closed = asyncio.create_task(reader.read())
            while not closed.done():
                writer.write(b"X-More: x\r\n")
                await asyncio.sleep(0.02)
            writer.close()

    run(test())


@pytest.mark.slow
def test_a_response_that_nobody_takes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "WRITE_SECONDS", 0.1)

    async def test() -> None:
        async with Serving() as server:
            _, writer = await server.open(b"GET /huge HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await server.until_no_connections()
            writer.close()

    run(test())


@pytest.mark.slow
def test_another_request_gains_no_time_for_a_response_that_nobody_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protocol, "WRITE_SECONDS", 0.3)

    async def test() -> None:
        async with Serving() as server:
            _, writer = await server.open(GET.replace(b"/ ", b"/huge ", 1))
            await asyncio.sleep(0.1)
            writer.write(GET)
            await server.until_no_connections()
            writer.close()

    run(test())


@pytest.mark.slow
def test_a_response_that_is_taken_slowly_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "WRITE_SECONDS", 0.2)

    async def test() -> None:
        async with Serving() as server:
            reader, writer = await server.open(b"GET /huge HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            taken = 0
            while taken < HUGE:
                piece = await reader.read(2**22)
                assert piece
                taken += len(piece)
                if taken < 2**14:
                    await asyncio.sleep(0.05)
            writer.close()

    run(test())


@pytest.mark.slow
def test_requests_on_one_connection_are_answered_however_long_it_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.2)

    async def test() -> None:
        async with Serving() as server:
            reader, writer = await server.open()
            for _ in range(5):
                writer.write(GET)
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200")
                assert await reader.readexactly(2) == b"xx"
                await asyncio.sleep(0.1)
            writer.close()

    run(test())
