"""The ASGI application: checks before Django reads a request, and the access log.

It answers the health checks, and does not read the body of a request that is too long or has no
credentials: Django answers it without its body, and the connection is closed. Slow clients are the
proxy's, see docs/operations.md.
"""

import asyncio
import logging
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext, suppress
from io import BytesIO
from typing import Any, Final

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponseBase
from structlog.contextvars import clear_contextvars

from konstruct import __version__, heartbeats
from konstruct.api import health
from konstruct.api.http.problems import Problem, accepts_api_keys
from konstruct.channels.slack.web_api import MAX_BODY_BYTES as MAX_SLACK_BODY_BYTES
from konstruct.logs import fields
from konstruct.web.handler import Caller, Handler, Request, refusal
from memory.embedding.embedder import load_in_background
from tenants import metrics, traces

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

logger = logging.getLogger(__name__)
access_log = logging.getLogger("konstruct.access")

HEALTH: Final = {"/health/live": health.live, "/health/ready": health.ready}
# The status in the access log of a request that its client left.
CLIENT_DISCONNECTED: Final = 499
# Limit of path and query together.
MAX_URL_BYTES: Final = 8190
# A body of a request without credentials outside of the APIs, such as the form of a login.
MAX_SMALL_BODY_BYTES: Final = 64 * 1024
# Requests from Slack at once: their body is read before their signature is checked.
MAX_SLACK_REQUESTS: Final = 32
# A client that still sends when the connection is closed may not see the response. So a body that
# is not read is discarded for this time, up to this many bytes.
DISCARD_SECONDS: Final = 2.0
MAX_DISCARDED_BYTES: Final = 10_000_000
MALFORMED: Final = (
    "The request has Transfer-Encoding beside Content-Length, or in HTTP/1.0, so that the end of "
    "its body is ambiguous, or another version than HTTP/1. Send one of them, in HTTP/1.1."
)
# The interface that serves a path, by the first part of the path.
INTERFACES: Final = {
    "admin": "admin",
    "api": "rest",
    "channels": "slack",
    "mcp": "mcp",
    "mem0": "mem0",
    "v1": "openai",
}
REQUESTS: Final = metrics.counter(
    "konstruct_requests_total",
    "Requests to the web, without health checks. 4xx includes 499: the client disconnected.",
    interface=set(INTERFACES.values()),
    method=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"),
    status=("1xx", "2xx", "3xx", "4xx", "5xx"),
)
REQUEST_SECONDS: Final = metrics.histogram(
    "konstruct_request_seconds",
    "How long requests took, with the wait for a reply.",
    interface=set(INTERFACES.values()),
)


class Exchange:
    """A request, with as much of its body as Django may read, and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self._receive = receive
        self._send = send
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"")
        is_chunked, version = b"transfer-encoding" in headers, scope.get("http_version", "1.1")
        is_ambiguous = is_chunked and (bool(length) or version == "1.0")
        self.is_malformed = is_ambiguous or version not in ("1.0", "1.1")
        self._declared = int(length) if length.isdigit() else 0
        self.is_slack = b"x-slack-signature" in headers
        self._read = 0
        self._has_more = is_chunked or self._declared > 0
        self._must_close = self.is_malformed
        self.status = 0
        self.is_sent = False

    @property
    def max_bytes(self) -> int:
        """The maximum length of the body that is read."""
        if self.scope["konstruct.caller"].name:
            return int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        if self.is_slack:
            return MAX_SLACK_BODY_BYTES
        return 0 if accepts_api_keys(self.scope["path"]) else MAX_SMALL_BODY_BYTES

    async def receive(self) -> Message:
        """Return the next part of the body up to the limit, and then the client's disconnection."""
        if self._must_close:
            await asyncio.Future()  # ends: Django cancels it after the response
        if not self._has_more:
            return await self._receive()
        if self._declared > self.max_bytes or not self.max_bytes:
            return self._leave_rest(self._declared)
        message = await self._receive()
        self._read += len(message.get("body", b""))
        if self._read > self.max_bytes:
            return self._leave_rest(self._read)
        self.scope["konstruct.body_length"] = self._read
        self._has_more = message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the response. The connection is closed if the body was not read."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._must_close = self._must_close or self._has_more
            if self._must_close:
                headers = [*message["headers"], (b"Connection", b"close")]
                message = {**message, "headers": headers}
        elif not message.get("more_body", False):
            if self._has_more:
                await self._send({**message, "more_body": True})
                await self._discard_body()
                message = {"type": "http.response.body"}
            self.is_sent = True
        await self._send(message)

    def _leave_rest(self, length: int) -> Message:
        """End the body for Django, which refuses a length above its limit."""
        self._must_close = True
        self.scope["konstruct.body_length"] = length
        return {"type": "http.request"}

    async def _discard_body(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(DISCARD_SECONDS):
                while self._has_more and self._read < MAX_DISCARDED_BYTES:
                    message = await self._receive()
                    self._read += len(message.get("body", b""))
                    self._has_more = message.get("more_body", False)


class Application:
    """The ASGI application of the web process."""

    def __init__(self) -> None:
        self.handler = Handler()
        self._slack_bodies = asyncio.Semaphore(MAX_SLACK_REQUESTS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or start and stop the process."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served here, not {scope['type']}")
        clear_contextvars()
        exchange = Exchange(scope, receive, send)
        if scope["path"] in HEALTH and not exchange.is_malformed:
            # In no thread of the requests: it does not wait for them.
            view = HEALTH[scope["path"]]
            response = await asyncio.to_thread(view, ASGIRequest(scope, BytesIO()))
            await self.handler.send_response(response, exchange.send)
            return
        with traces.request_span(scope):
            await self._answer_logged(exchange)

    async def _answer_logged(self, exchange: Exchange) -> None:
        """Serve a request, and write it to the access log and the metrics."""
        started = time.perf_counter()
        status, scope = 500, exchange.scope
        method = scope["method"]
        try:
            await self._answer(exchange)
            status = exchange.status if exchange.is_sent else CLIENT_DISCONNECTED
        finally:
            seconds = time.perf_counter() - started
            milliseconds = round(seconds * 1000, 1)
            interface = interface_of(scope["path"])
            outage, path = scope.get("konstruct.outage", ""), scope.get(traces.PATH_IN_SCOPE, "-")
            REQUESTS.of(interface=interface, method=method, status=f"{status // 100}xx").inc()
            REQUEST_SECONDS.of(interface=interface).observe(seconds)
            traces.bind_ids_of_scope(scope)
            traces.set_attributes(
                tenant_id=traces.log_ids().get("tenant_id"), interface=interface, status=status
            )
            access_log.log(
                logging.ERROR if outage else logging.INFO,
                "%s %s %s %.0f ms%s",
                *(method, path, status, milliseconds, outage and f": {outage}"),
                extra=fields(method=method, path=path, status=status, milliseconds=milliseconds),
            )

    async def _answer(self, exchange: Exchange) -> None:
        scope = exchange.scope
        scope["konstruct.caller"] = Caller("")
        response: HttpResponseBase | None
        if exchange.is_malformed:
            response = refusal(Request(scope, BytesIO()), Problem.of_status(400, MALFORMED))
        elif len(scope["raw_path"]) + len(scope["query_string"]) > MAX_URL_BYTES:
            response = refusal(Request(scope, BytesIO()), Problem.of_status(414))
        else:
            response = await self.handler.identify(scope)
        if response is not None:
            await self.handler.send_response(response, exchange.send)
            return
        is_limited = exchange.is_slack and not scope["konstruct.caller"].name
        async with self._slack_bodies if is_limited else nullcontext():
            await self.handler.handle(scope, exchange.receive, exchange.send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        load_in_background()
        traces.start("web")
        logger.info("Konstruct %s: web process starts", __version__)
        self.handler.replies.start()
        loop = asyncio.get_running_loop()
        stop_server: Any = signal.getsignal(signal.SIGTERM)

        def stop(*received: Any) -> None:
            """Wake the requests that wait for replies: the server waits for their responses."""
            loop.call_soon_threadsafe(self.handler.replies.stop)
            if callable(stop_server):
                stop_server(*received)

        signal.signal(signal.SIGTERM, stop)
        heartbeat = asyncio.create_task(_write_heartbeats())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        signal.signal(signal.SIGTERM, stop_server)
        heartbeat.cancel()
        await self.handler.replies.close()
        self.handler.threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(traces.stop)
        await send({"type": "lifespan.shutdown.complete"})


async def _write_heartbeats() -> None:
    # Ends: when the process stops. It pauses after each heartbeat.
    while True:
        await asyncio.to_thread(heartbeats.write_heartbeat, heartbeats.WEB)
        await asyncio.sleep(heartbeats.INTERVAL_SECONDS)


def interface_of(path: str) -> str:
    """Return the interface that serves a path; "" for other paths."""
    return INTERFACES.get(path.lstrip("/").partition("/")[0], "")
