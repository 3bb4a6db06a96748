"""A language model server on loopback: returns the answers of a test, and records requests."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.servers.loopback import LoopbackServer


@dataclass(frozen=True)
class Answer:
    """One response: JSON or text; after `release()` if `wait`; byte by byte if `drip`.

    It begins after `delay` seconds.

    Or `events`, each sent as soon as possible; all but the first wait for `release()`. With
    `cut_after` the connection ends after this number of bytes.
    """

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: bool = False
    drip: float = 0.0
    delay: float = 0.0
    events: tuple[str, ...] = ()
    cut_after: int | None = None

    @property
    def content(self) -> bytes:
        if self.events:
            return "".join(self.events).encode()
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


def streamed(
    *deltas: str | dict[str, Any],
    wait: bool = False,
    whole: bool = True,
    usage: Any = None,
    reason: str = "stop",
) -> Answer:
    """Return a streamed answer as of OpenAI's API. All but the first event wait if `wait`."""
    parts = [{"content": delta} if isinstance(delta, str) else delta for delta in deltas]
    choices: list[dict[str, Any]] = [{"delta": delta} for delta in parts]
    choices += [{"delta": {}, "finish_reason": reason}] if whole else []
    events = [f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices]
    events += [f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n"] if usage else []
    events += ["data: [DONE]\n\n"] if whole else []
    headers = {"Content-Type": "text/event-stream"}
    return Answer("", headers=headers, wait=wait, events=tuple(events))


@dataclass(frozen=True)
class Request:
    """A request to the server."""

    path: str
    headers: Mapping[str, str]
    body: Any
    port: int = 0
    """The client's: one for each connection."""

    @property
    def question(self) -> str:
        return str(self.body["messages"][-1]["content"])


class LLMServer(LoopbackServer):
    """Returns `answers` in turn, then `default`; only at `paths`, if there are any."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.default = Answer({"content": "Noted."})
        self.paths: set[str] = set()
        self.requests: list[Request] = []
        self._released = threading.Event()
        self._lock = threading.Lock()
        super().__init__()

    def __exit__(self, *error: object) -> None:
        self.release()
        super().__exit__(*error)

    def release(self) -> None:
        """Send all waiting answers."""
        self._released.set()

    def forget(self) -> None:
        """Forget requests and answers; answers with `wait` wait again."""
        with self._lock:
            self.answers.clear()
            self.requests.clear()
            self._released.clear()

    def wait_for_requests(self, count: int, seconds: float = 120) -> None:
        """Return after the given number of requests; fail if they do not arrive."""
        deadline = time.monotonic() + seconds
        while len(self.requests) < count:
            assert time.monotonic() < deadline, f"{len(self.requests)} of {count} requests came"
            time.sleep(0.02)

    def reply_to(self, request: Request) -> Answer:
        """Return the answer to a request."""
        if self.paths and request.path not in self.paths:
            return Answer("no such path", 404)
        return self.answers.pop(0) if self.answers else self.default

    def answer_post(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        parsed = json.loads(body)
        request = Request(handler.path, dict(handler.headers), parsed, handler.client_address[1])
        with self._lock:
            self.requests.append(request)
            answer = self.reply_to(request)
        time.sleep(answer.delay)
        if answer.wait and not answer.events:
            self._released.wait(120)
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(answer.content)))
        handler.end_headers()
        if answer.cut_after is None:
            self._send(handler, answer)
        else:
            handler.wfile.write(answer.content[: answer.cut_after])
            handler.close_connection = True

    def _send(self, handler: BaseHTTPRequestHandler, answer: Answer) -> None:
        pieces = (
            [answer.content[i : i + 1] for i in range(len(answer.content))]
            if answer.drip
            else [answer.content]
        )
        if answer.events:
            pieces = [event.encode() for event in answer.events]
        try:
            for number, piece in enumerate(pieces):
                if number == 1 and answer.events and answer.wait:
                    self._released.wait(120)
                handler.wfile.write(piece)
                handler.wfile.flush()
                time.sleep(answer.drip)
        except ConnectionError:
            handler.close_connection = True  # the client closed the connection, as some tests want
