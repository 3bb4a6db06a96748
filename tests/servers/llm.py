"""A language model's server on loopback: answers what a test wants, and notes what it was asked."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Answer:
    """One response: JSON, or text as it is; after `release()` if `wait`; slowly if `drip`.

    It begins after `delay` seconds.

    Or `events`, each as soon as it can be, of which all but the first wait for `release()`.
    With `cut_after` the connection ends after so many bytes of it.
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
    """Return an answer in events, as OpenAI's API streams it; all but the first wait if `wait`."""
    said = [{"content": each} if isinstance(each, str) else each for each in deltas]
    choices: list[dict[str, Any]] = [{"delta": each} for each in said]
    choices += [{"delta": {}, "finish_reason": reason}] if whole else []
    events = [f"data: {json.dumps({'choices': [each]})}\n\n" for each in choices]
    events += [f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n"] if usage else []
    events += ["data: [DONE]\n\n"] if whole else []
    headers = {"Content-Type": "text/event-stream"}
    return Answer("", headers=headers, wait=wait, events=tuple(events))


@dataclass(frozen=True)
class Request:
    """What the server was asked."""

    path: str
    headers: Mapping[str, str]
    body: Any
    port: int = 0
    """The client's: one for each connection."""

    @property
    def question(self) -> str:
        return str(self.body["messages"][-1]["content"])


class LLMServer:
    """Answers with `answers` in turn, then with `default`; at `paths` alone, if there are any."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.default = Answer({"content": "Noted."})
        self.paths: set[str] = set()
        self.requests: list[Request] = []
        self._released = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def release(self) -> None:
        """Let every answer go that waits."""
        self._released.set()

    def forget(self) -> None:
        """Begin anew: nothing asked, nothing to answer, and who shall wait waits again."""
        with self._lock:
            self.answers.clear()
            self.requests.clear()
            self._released.clear()

    def wait_for_requests(self, count: int, seconds: float = 120) -> None:
        """Return when so many requests have come; fail if they do not."""
        deadline = time.monotonic() + seconds
        while len(self.requests) < count:
            assert time.monotonic() < deadline, f"{len(self.requests)} of {count} requests came"
            time.sleep(0.02)

    def reply_to(self, request: Request) -> Answer:
        """Return the answer to a request."""
        if self.paths and request.path not in self.paths:
            return Answer("no such path", 404)
        return self.answers.pop(0) if self.answers else self.default

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(length))
                request = Request(self.path, dict(self.headers), body, self.client_address[1])
                with server._lock:
                    server.requests.append(request)
                    answer = server.reply_to(request)
                time.sleep(answer.delay)
                if answer.wait and not answer.events:
                    server._released.wait(120)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                if answer.cut_after is None:
                    self._send(answer)
                else:
                    self.wfile.write(answer.content[: answer.cut_after])
                    self.close_connection = True

            def _send(self, answer: Answer) -> None:
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
                            server._released.wait(120)
                        self.wfile.write(piece)
                        self.wfile.flush()
                        time.sleep(answer.drip)
                except ConnectionError:
                    self.close_connection = True  # the client had enough, as tests want it

            def log_message(self, *arguments: object) -> None:
                """Say nothing."""

        return Handler
