"""A language model server that echoes tokens, and checks prompts for foreign ones."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.servers.llm import Answer, LLMServer, Request

# Each text of a client has one of these: tenant, user and number.
TOKEN = re.compile(r"\b([a-z]+)-([a-z]+)-(\d+)\b")
POISON = "poison"


class EchoServer(LLMServer):
    """Answers with the token of the question; refuses poison; can be stalled or broken."""

    def __init__(self) -> None:
        super().__init__()
        self.crossed: list[str] = []
        self.asked = 0
        self._breaks = 0
        self._flow = threading.Event()
        self._flow.set()

    def reply_to(self, request: Request) -> Answer:
        self.asked += 1
        tokens = {found[:2] for found in TOKEN.findall(json.dumps(request.body))}
        if len({tenant for tenant, _ in tokens}) > 1 or len({user for _, user in tokens}) > 1:
            self.crossed.append(f"one prompt holds words of {sorted(tokens)}")
        self.requests.clear()  # a long run sends many requests
        if self._breaks:
            self._breaks -= 1
            return Answer("busy", 503)
        if POISON in request.question:
            return Answer({"error": "refused"}, 400)
        match = TOKEN.search(request.question)
        return Answer({"content": f"Heard {match[0] if match else 'nothing'}."}, wait=self._stalled)

    @property
    def _stalled(self) -> bool:
        return not self._flow.is_set()

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Hold all answers during the block."""
        self._released.clear()
        self._flow.clear()
        try:
            yield
        finally:
            self._flow.set()
            self.release()

    @contextmanager
    def gone(self) -> Iterator[None]:
        """Accept no connections during the block."""
        address = self._server.server_address
        self._close()
        try:
            yield
        finally:
            self._open(address)
            self._thread.start()

    def break_down(self, times: int) -> None:
        """Answer the next requests with 503."""
        self._breaks = times
