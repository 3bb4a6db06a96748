"""Bodies of requests, which end in size and time, and bodies of responses, which hold no thread."""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from konstruct.web import responses
from konstruct.web.handler import MAX_URL_BYTES, Handler
from konstruct.web.requests import Body, BodyTooSlow, ClientGone, read_body
from konstruct.web.responses import CutShort, Stream, whole_body

PIECE = b"x" * 1000


def receiving(*pieces: bytes, ends: bool = True) -> Any:
    """What a server gives: the pieces, then the end or silence."""
    messages: Iterator[dict[str, Any]] = (
        {"type": "http.request", "body": piece, "more_body": not ends or n < len(pieces)}
        for n, piece in enumerate(pieces, start=1)
    )

    async def receive() -> dict[str, Any]:
        message = next(messages, None)
        if message is None:
            await asyncio.sleep(3600)
        assert message is not None
        return message

    return receive


def read(receive: Any, announced: int | None = None, seconds: float = 60) -> Body:
    return asyncio.run(
        read_body(receive, announced=announced, max_bytes=10_000, timeout_seconds=seconds)
    )


def test_a_body_is_read_to_its_end() -> None:
    body = read(receiving(b"one ", b"two", b""))
    assert (body.file.read(), body.length, body.read_to_end) == (b"one two", 7, True)
    body.file.close()


def test_of_a_body_that_is_too_large_no_more_than_the_limit_is_kept() -> None:
    body = read(receiving(*[PIECE] * 15))
    assert (len(body.file.read()), body.length, body.read_to_end) == (10_000, 15_000, True)
    body.file.close()


@pytest.mark.parametrize("announced", [None, 30_000])
def test_a_body_without_end_is_left_where_it_is(announced: int | None) -> None:
    body = read(receiving(*[PIECE] * 100, ends=False), announced)
    assert (len(body.file.read()), body.length, body.read_to_end) == (10_000, 41_000, False)
    body.file.close()


def test_what_no_thread_had_when_its_client_went_is_not_answered(settings: Any) -> None:
    settings.WEB_THREADS = 1
    handler, asked, is_free = Handler(), [], threading.Event()
    handler.get_response = asked.append
    messages = iter([{"type": "http.request", "body": b"{}"}, {"type": "http.disconnect"}])
    scope = {"type": "http", "method": "POST", "raw_path": b"/", "path": "/", "query_string": b"",
             "headers": []}  # fmt: skip

    async def receive() -> Any:
        return next(messages)

    async def main() -> None:
        handler._pool._executor.submit(is_free.wait)
        await handler(scope, receive, receive)
        is_free.set()
        handler._pool._executor.shutdown()

    asyncio.run(main())
    assert asked == []


def test_a_body_that_says_it_is_far_too_large_is_not_read_at_all() -> None:
    body = read(receiving(ends=False), announced=10**12)
    assert (body.file.read(), body.length, body.read_to_end) == (b"", 10**12, False)
    body.file.close()


def test_a_body_must_come_in_time() -> None:
    with pytest.raises(BodyTooSlow):
        read(receiving(PIECE, ends=False), announced=2000, seconds=0.01)


def test_a_client_that_goes_is_noticed() -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    with pytest.raises(ClientGone):
        read(receive)


def test_a_short_stream_is_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "MAX_WHOLE_BYTES", 3000)
    assert whole_body(iter([PIECE] * 3)) == (PIECE * 3, None)
    nothing, rest = whole_body(iter([PIECE] * 4))
    assert nothing == b""
    assert rest is not None
    assert b"".join(rest) == PIECE * 4


def test_a_stream_is_made_to_its_end_while_nobody_reads_it() -> None:
    async def test() -> None:
        stream = Stream(asyncio.get_running_loop())
        writer = threading.Thread(target=stream.write, args=(iter([PIECE] * 500),))
        writer.start()
        await asyncio.to_thread(writer.join)  # it has ended before the first piece is read
        assert b"".join([piece async for piece in stream.read()]) == PIECE * 500
        stream.give_up()

    asyncio.run(test())


def test_a_stream_is_read_while_it_is_made() -> None:
    async def test() -> None:
        stream, go_on = Stream(asyncio.get_running_loop()), threading.Event()

        def pieces() -> Iterator[bytes]:
            yield b"first"
            assert go_on.wait(60)
            yield b"second"

        writer = asyncio.create_task(asyncio.to_thread(stream.write, pieces()))
        read = stream.read()
        assert await anext(read) == b"first"
        go_on.set()
        assert [piece async for piece in read] == [b"second"]
        await writer
        stream.give_up()

    asyncio.run(test())


def test_a_stream_that_nobody_wants_any_more_stops() -> None:
    async def test() -> None:
        stream = Stream(asyncio.get_running_loop())
        made = 0

        def without_end() -> Iterator[bytes]:
            nonlocal made
            while True:
                made += 1
                yield PIECE

        writer = asyncio.create_task(asyncio.to_thread(stream.write, without_end()))
        await anext(stream.read())
        stream.give_up()
        await writer
        assert made > 0

    asyncio.run(test())


def test_a_stream_that_cannot_be_made_is_no_short_stream() -> None:
    async def test() -> None:
        stream = Stream(asyncio.get_running_loop())

        def broken() -> Iterator[bytes]:
            yield b"first"
            raise ZeroDivisionError

        writer = asyncio.create_task(asyncio.to_thread(stream.write, broken()))
        with pytest.raises(CutShort):
            assert [piece async for piece in stream.read()] == [b"first"]
        with pytest.raises(ZeroDivisionError):
            await writer
        stream.give_up()

    asyncio.run(test())


def test_an_address_that_is_too_long_is_a_problem() -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    path = "/api/v1/messages/"
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": [],
        "query_string": b"x" * MAX_URL_BYTES, "root_path": "",
    }  # fmt: skip
    asyncio.run(Handler()(scope, receiving(), send))
    start, body = sent
    assert start["status"] == 414
    assert json.loads(body["body"])["type"] == "urn:konstruct:problem:address-too-long"
