"""Bodies of requests, which are limited, and bodies of responses, which hold no thread."""

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from django.conf import settings
from django.core.signals import request_finished, request_started
from django.http import HttpResponse, StreamingHttpResponse

from konstruct.orchestrator.replies import RepeatedResponse
from konstruct.web import application as module, handler

PIECE = b"x" * 10_000
MAX_BYTES = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
KEY = (b"authorization", b"Bearer x")
CHUNKED = (b"transfer-encoding", b"chunked")
API = "/api/v1/messages/"
WRONG_KEY = (b"authorization", b"Bearer wrong")
SLACK = (b"x-slack-signature", b"x")
MAX_SLACK_BYTES = module.MAX_SLACK_BODY_BYTES


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    def verify(request: Any) -> HttpResponse:
        request.caller.name = "" if request.headers.get("Authorization") == "Bearer wrong" else "a"
        return HttpResponse()

    monkeypatch.setattr(handler, "verify", verify)


def length(count: int) -> tuple[bytes, bytes]:
    return b"content-length", b"%d" % count


class Served:
    """A request, as the server has received it when the response began and when it ended."""

    def __init__(
        self,
        *headers: tuple[bytes, bytes],
        respond: Callable[[Any], Any],
        path: str = API,
        pieces: int = 0,
        query: bytes = b"",
    ) -> None:
        self.received = self.before = 0
        self.sent: list[Any] = []
        self._pieces = pieces
        application = module.Application()
        self.handler = application.handler

        def get_response(request: Any) -> Any:
            request.resolver_match = None
            return respond(request)

        self.handler.get_response = get_response  # type: ignore[method-assign]
        scope = {
            "type": "http", "method": "POST", "path": path, "raw_path": path.encode(),
            "query_string": query, "headers": list(headers), "http_version": "1.1",
        }  # fmt: skip
        asyncio.run(asyncio.wait_for(application(scope, self._receive, self._send), 60))

    async def _receive(self) -> Any:
        if self.received >= max(self._pieces, 1):
            await asyncio.Future()
        self.received += 1
        more = self.received < self._pieces
        return {"type": "http.request", "body": PIECE if self._pieces else b"", "more_body": more}

    async def _send(self, message: Any) -> None:
        if not self.sent:
            self.before = self.received
        self.sent.append(message)


def no_body(request: Any) -> HttpResponse:
    return HttpResponse(b"%d" % len(request.body))


@pytest.mark.parametrize(
    ("headers", "path", "pieces", "read"),
    [
        ([length(30_000)], API, 3, 0),
        ([CHUNKED], API, 3, 0),
        ([KEY, length(30_000)], API, 3, 3),
        ([WRONG_KEY, length(30_000)], API, 3, 0),
        ([WRONG_KEY, CHUNKED], API, 3, 0),
        ([KEY, length(MAX_BYTES + 1)], API, 300, 0),
        ([KEY, CHUNKED], API, 10_000, MAX_BYTES // len(PIECE) + 1),
        ([length(30_000)], "/admin/login/", 3, 3),
        ([CHUNKED], "/admin/login/", 300, module.MAX_SMALL_BODY_BYTES // len(PIECE) + 1),
        ([(b"cookie", b"sessionid=x"), CHUNKED], "/admin/", 20, 20),
        ([SLACK, CHUNKED], "/channels/slack/events", 20, 20),
        ([SLACK, CHUNKED], "/channels/slack/events", 300, MAX_SLACK_BYTES // len(PIECE) + 1),
    ],
)
def test_a_body_that_is_too_long_or_without_credentials_is_not_read(
    monkeypatch: pytest.MonkeyPatch, headers: Any, path: str, pieces: int, read: int
) -> None:
    monkeypatch.setattr(module, "DISCARD_SECONDS", 0.1)
    served = Served(*headers, respond=lambda _: HttpResponse(), path=path, pieces=pieces)
    assert served.before == read
    assert ((b"Connection", b"close") in served.sent[0]["headers"]) == (read < pieces)


def test_django_sends_its_signals_in_the_threads_of_requests() -> None:
    """In one thread for all requests, those of a tenant would wait for those of another."""
    names = []

    def receive(**_: Any) -> None:
        names.append(threading.current_thread().name)

    with ExitStack() as stack:
        for signal in (request_started, request_finished):
            signal.connect(receive)
            stack.callback(signal.disconnect, receive)
        Served(respond=lambda _: HttpResponse())
    assert names
    assert {name.partition("_")[0] for name in names} == {"web"}


def test_a_streamed_response_takes_no_thread_while_it_is_sent() -> None:
    served = Served(respond=lambda _: StreamingHttpResponse(iter([PIECE] * 50)))
    assert b"".join(message.get("body", b"") for message in served.sent) == PIECE * 50
    assert len(served.sent) > 5


def test_an_address_that_is_too_long_is_a_problem() -> None:
    start, body = Served(respond=no_body, query=b"x" * module.MAX_URL_BYTES).sent
    assert start["status"] == 414
    assert json.loads(body["body"])["type"] == "urn:konstruct:problem:address-too-long"


def test_only_so_many_bodies_are_read_at_once_before_slacks_signature_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_SLACK_REQUESTS", 2)
    application, reading, has_left = module.Application(), list[int](), asyncio.Event()

    async def receive() -> Any:
        reading.append(1)
        await has_left.wait()
        return {"type": "http.disconnect"}

    async def main() -> None:
        scope = {
            "type": "http", "method": "POST", "path": API, "raw_path": API.encode(),
            "query_string": b"", "headers": [SLACK, CHUNKED], "client": ("203.0.113.9", 1),
        }  # fmt: skip
        asked = [asyncio.create_task(application(dict(scope), receive, print)) for _ in range(5)]
        await asyncio.sleep(0.02)
        assert len(reading) == 2
        has_left.set()
        await asyncio.gather(*asked)

    asyncio.run(main())


def test_a_stream_of_parts_ends_when_one_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [b"third", b"second"]
    monkeypatch.setattr(handler, "READ_AGAIN_SECONDS", 0.001)

    def respond(request: Any) -> HttpResponse:
        response: Any = HttpResponse(b"first")
        # The third call raises IndexError.
        response.repeated = RepeatedResponse(60, parts.pop, b"refused")
        return response

    served = Served(KEY, respond=respond)
    bodies = [message["body"] for message in served.sent if message.get("body")]
    assert bodies == [b"first", b"second", b"third"]
    assert not served.sent[-1].get("more_body")
