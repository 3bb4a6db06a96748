"""An HTTP server on loopback in a thread of this process; subclasses write the answers."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print a traceback, but not for a client that was killed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class LoopbackServer:
    """Accepts POST requests at a free port while its block runs."""

    def __init__(self) -> None:
        self._open(("127.0.0.1", 0))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def answer_post(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Write the answer to a request with this body to the handler."""
        raise NotImplementedError

    def _open(self, address: Any) -> None:
        """Accept connections at an address. They are answered when the thread runs."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                server.answer_post(self, self.rfile.read(length))

            def log_message(self, format: str, *args: Any) -> None:
                """Write nothing."""

        self._server = _Server(address, Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def _close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
