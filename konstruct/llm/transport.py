"""HTTP requests that end at a deadline, and answers of a limited size."""

import urllib.request
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

import httpcore
import httpx

from konstruct.llm.exceptions import LLMReplyTooLong
from konstruct.outgoing import Network, PublicNetwork

# The maximum length of an answer. Of a longer one only the beginning is read.
MAX_REPLY_CHARACTERS: Final = 65_536
# The maximum size of a character: twelve bytes in JSON; in a stream, each event adds some hundred.
BYTES_PER_CHARACTER: Final = 12
BYTES_PER_STREAMED_CHARACTER: Final = 512
OVERHEAD_BYTES: Final = 64 * 1024
# Further headers, such as those that openai's SDK reads from the environment, are not sent.
SENT_HEADERS: Final = (
    *("Host", "User-Agent", "Authorization", "Accept", "Content-Type", "Content-Length"),
)


class Transport(httpx.BaseTransport):
    """Sends the requests of an `httpx.Client`. Their timeouts are times of `time.monotonic`.

    The proxies are those of the environment, as httpx has them.

    Args:
        is_guarded: connect only to public addresses and allowed hosts, and without a proxy.
    """

    def __init__(self, *, is_guarded: bool = False) -> None:
        options: dict[str, Any] = {
            "ssl_context": httpx.create_ssl_context(),
            "max_connections": None,
            "max_keepalive_connections": 20,
            "keepalive_expiry": 5.0,
            "network_backend": PublicNetwork() if is_guarded else Network(),
        }
        self._pools = {"": httpcore.ConnectionPool(**options)}
        proxies = {} if is_guarded else urllib.request.getproxies()
        for scheme, url in proxies.items():
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
