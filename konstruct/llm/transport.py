"""HTTP requests that end at a deadline, and answers of a limited size.

The timeouts of httpx are for each read, so a server that sends a byte from time to time could hold
a thread for hours. Here the timeouts of a request are times of `time.monotonic`: each operation of
its connection gets the time that is left. The lookup of a host's name has no timeout, so a
connection is opened in another thread.
"""

import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Any, Final

import httpcore
import httpx

from konstruct.llm.exceptions import LLMReplyTooLong

# The maximum length of an answer. Of a longer one only the beginning is read.
MAX_REPLY_CHARACTERS: Final = 65_536
# The maximum size of a character: twelve bytes in JSON; in a stream, each event adds some hundred.
BYTES_PER_CHARACTER: Final = 12
BYTES_PER_STREAMED_CHARACTER: Final = 512
OVERHEAD_BYTES: Final = 64 * 1024
# A request is written in parts of this size, each in the time that is left.
WRITE_BYTES: Final = 16 * 1024
# Further headers, such as those that openai's SDK reads from the environment, are not sent.
SENT_HEADERS: Final = (
    *("Host", "User-Agent", "Authorization", "Accept", "Content-Type", "Content-Length"),
)


class Transport(httpx.BaseTransport):
    """Sends the requests of an `httpx.Client`. Their timeouts are times of `time.monotonic`.

    The proxies are those of the environment, as httpx has them.
    """

    def __init__(self) -> None:
        options: dict[str, Any] = {
            "ssl_context": httpx.create_ssl_context(),
            "max_connections": None,
            "max_keepalive_connections": 20,
            "keepalive_expiry": 5.0,
            "network_backend": Network(),
        }
        self._pools = {"": httpcore.ConnectionPool(**options)}
        for scheme, url in urllib.request.getproxies().items():
            if scheme in ("http", "https"):
                proxy = httpx.Proxy(url if "://" in url else f"http://{url}")
                self._pools[scheme] = httpcore.HTTPProxy(
                    str(proxy.url), proxy_auth=proxy.raw_auth, **options
                )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Its answer has an `AnswerBody`, as the extension `body` too."""
        is_direct = urllib.request.proxy_bypass(request.url.host)
        pool = self._pools.get("" if is_direct else request.url.scheme, self._pools[""])
        headers = [(n, request.headers[n]) for n in SENT_HEADERS if n in request.headers]
        answer = pool.handle_request(
            httpcore.Request(
                request.method,
                str(request.url),
                headers=[*headers, ("Accept-Encoding", "identity")],
                content=request.stream,
                extensions=request.extensions,
            )
        )
        answer_headers = httpx.Headers(answer.headers)
        # No compression is requested. A compressed answer would have no limit after decompression.
        answer_headers.pop("content-encoding", None)
        is_event_stream = answer_headers.get("content-type", "").startswith("text/event-stream")
        body = AnswerBody(answer, is_event_stream)
        return httpx.Response(
            answer.status, headers=answer_headers, stream=body, extensions={"body": body}
        )

    def close(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            pool.close()


class AnswerBody(httpx.SyncByteStream):
    """A body that raises LLMReplyTooLong after the maximum number of bytes."""

    def __init__(self, answer: httpcore.Response, is_event_stream: bool) -> None:
        self._answer, self.is_event_stream = answer, is_event_stream

    def __iter__(self) -> Iterator[bytes]:
        size = BYTES_PER_STREAMED_CHARACTER if self.is_event_stream else BYTES_PER_CHARACTER
        max_bytes, count = size * MAX_REPLY_CHARACTERS + OVERHEAD_BYTES, 0
        for chunk in self._answer.iter_stream():
            count += len(chunk)
            if count > max_bytes:
                raise LLMReplyTooLong(f"more than {max_bytes:,} bytes", MAX_REPLY_CHARACTERS)
            yield chunk

    def events(self) -> Iterator[bytes]:
        """Yield the data of the events of OpenAI's API, each of which is one line.

        The time is linear. That of the SDK's decoder is quadratic in the size of an event.
        """
        parts: list[bytes] = []
        for chunk in chain(self, (b"\n",)):
            *ends, begin = chunk.split(b"\n")
            for end in ends:
                line = b"".join((*parts, end)).strip()
                parts.clear()
                if line.startswith(b"data:"):
                    yield line.removeprefix(b"data:").lstrip()
            parts.append(begin)

    def close(self) -> None:
        """Close the answer, and its connection if the body was not read to its end."""
        self._answer.close()


class Network(httpcore.SyncBackend):
    """Opens connections. All timeouts are times of `time.monotonic`."""

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *args: Any, **options: Any
    ) -> httpcore.NetworkStream:
        seconds = _seconds_until(timeout)
        executor = ThreadPoolExecutor(1, "connect")
        opening = executor.submit(self.open, host, port, seconds, *args, **options)
        executor.shutdown(wait=False)
        try:
            return _Connection(opening.result(seconds))
        except TimeoutError:
            opening.add_done_callback(_close)
            raise httpcore.ConnectTimeout("timed out") from None

    def open(self, host: str, port: int, *args: Any, **options: Any) -> httpcore.NetworkStream:
        """Open a connection, with a timeout in seconds. It runs in a separate thread."""
        return super().connect_tcp(host, port, *args, **options)


def _close(opening: Future[httpcore.NetworkStream]) -> None:
    """Close a connection that was opened too late."""
    if opening.exception() is None:
        opening.result().close()


class _Connection(httpcore.NetworkStream):
    """A connection. All timeouts are times of `time.monotonic`."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _seconds_until(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), WRITE_BYTES):
            self._stream.write(buffer[start : start + WRITE_BYTES], _seconds_until(timeout))

    def start_tls(self, ssl_context: Any, server_hostname: Any = None, timeout: Any = None) -> Any:
        seconds = max(0.001, timeout - time.monotonic())  # it closes the connection if it fails
        return _Connection(self._stream.start_tls(ssl_context, server_hostname, seconds))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def close(self) -> None:
        self._stream.close()


def _seconds_until(deadline: float | None) -> float:
    """Return the time that is left. Raises httpcore.ReadTimeout if there is none."""
    seconds = (deadline or 0.0) - time.monotonic()
    if seconds <= 0:
        raise httpcore.ReadTimeout("timed out")
    return seconds
