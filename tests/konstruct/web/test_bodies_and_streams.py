"""Bodies of requests, limited in size and time, and bodies of responses, which hold no thread."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse, StreamingHttpResponse

from konstruct.web.handler import MAX_URL_BYTES, Handler
from konstruct.web.responses import Body, BodyTooSlow, read_body

PIECE = b"x" * 1000
SCOPE = {"type": "http", "method": "POST", "raw_path": b"/", "path": "/", "query_string": b"",
         "headers": []}  # fmt: skip


def receiving(*pieces: bytes, ends: bool = True) -> Any:
    """Yield the messages of a server: the pieces, then the end or nothing."""
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


def read(receive: Any, declared_length: int | None = None, seconds: float = 60) -> Body:
    return asyncio.run(
        read_body(
            receive, declared_length=declared_length, max_bytes=10_000, timeout_seconds=seconds
        )
    )


def test_too_large_body_is_buffered_only_to_the_limit() -> None:
    body = read(receiving(*[PIECE] * 15))
    assert (len(body.file.read()), body.length, body.is_complete) == (10_000, 15_000, True)
    body.file.close()


@pytest.mark.parametrize("declared_length", [None, 30_000])
def test_endless_body_is_not_read(declared_length: int | None) -> None:
    body = read(receiving(*[PIECE] * 100, ends=False), declared_length)
    assert (len(body.file.read()), body.length, body.is_complete) == (10_000, 41_000, False)
    body.file.close()


def test_body_with_a_far_too_large_length_is_not_read() -> None:
    body = read(receiving(ends=False), declared_length=10**12)
    assert (body.file.read(), body.length, body.is_complete) == (b"", 10**12, False)
    body.file.close()


def test_slow_body_times_out() -> None:
    with pytest.raises(BodyTooSlow):
        read(receiving(PIECE, ends=False), declared_length=2000, seconds=0.01)


def streamed(pieces: Iterator[bytes]) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the messages that a server receives, and the number of busy threads at each."""

    def respond(request: Any) -> StreamingHttpResponse:
        request.close()  # as Django does
        return StreamingHttpResponse(pieces)

    handler = Handler()
    handler.get_response = respond
    sent: list[dict[str, Any]] = []
    busy: list[int] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        busy.append(handler._pool.running(is_verified=False))

    asyncio.run(handler(dict(SCOPE), receiving(b""), send))
    return sent, busy


def test_a_streamed_response_takes_no_thread_while_it_is_sent() -> None:
    sent, busy = streamed(iter([PIECE] * 500))
    assert b"".join(message.get("body", b"") for message in sent) == PIECE * 500
    assert len(sent) > 5
    assert not any(busy)


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


@pytest.mark.xfail(strict=True, reason="B2")
def test_the_body_of_a_caller_without_credentials_is_not_read() -> None:
    def respond(request: Any) -> HttpResponse:
        request.close()  # as Django does
        return HttpResponse(status=401)

    handler, taken = Handler(), []
    handler.get_response = respond
    pieces = receiving(*[PIECE] * 3)

    async def receive() -> dict[str, Any]:
        taken.append(message := await pieces())
        return message

    async def send(message: dict[str, Any]) -> None: ...

    scope = {**SCOPE, "path": "/api/v1/messages/", "raw_path": b"/api/v1/messages/"}
    asyncio.run(handler(scope, receive, send))
    assert len(taken) <= 1
