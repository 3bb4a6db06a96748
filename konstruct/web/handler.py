"""The ASGI application: runs Django's synchronous requests in a bounded pool of threads.

Django's own ASGI handler uses a thread, and with it a database connection, for each running
request. This one has `WEB_THREADS` threads. The event loop waits for connections, for request
bodies, for slow clients and for replies.
"""

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Coroutine
from contextlib import nullcontext, suppress
from contextvars import Context, copy_context
from dataclasses import replace
from io import BytesIO
from typing import Any, Final, ParamSpec, TypeVar
from uuid import UUID

from django.conf import settings
from django.core import signals
from django.core.handlers.asgi import ASGIRequest
from django.core.handlers.base import BaseHandler
from django.http import FileResponse
from django.urls import set_script_prefix
from structlog.contextvars import clear_contextvars

from konstruct import __version__
from konstruct.api.health import ready
from konstruct.api.http.problems import Problem
from konstruct.heartbeats import INTERVAL_SECONDS, WEB, write_heartbeat
from konstruct.logs import fields
from konstruct.orchestrator.replies.status import settled_messages
from konstruct.web.callers import Callers, TooManyUnverified
from konstruct.web.pool import Overloaded, Pool, Share
from konstruct.web.replies import PartialReplies, ReplyWaiters, stream_reply
from konstruct.web.responses import (
    CHUNK_BYTES,
    MAX_BYTES_IN_MEMORY,
    AsgiResponse,
    Body,
    BodyTooSlow,
    ClientDisconnected,
    Receive,
    Request,
    Scope,
    Send,
    asgi_problem_response,
    asgi_response,
    content_length,
    file_chunks,
    has_ambiguous_length,
    headers_of,
    path_of,
    read_body,
)
from memory.embedding.embedder import load_in_background
from tenants import traces
from tenants.context import tenant_scope
from tenants.log_context import bind_ids_of_scope, log_ids
from tenants.metrics import counter, histogram

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)
access_log = logging.getLogger("konstruct.access")

HEALTH = "/health/"
LIVE = "/health/live"
READY = "/health/ready"
BODY_TIMEOUT_SECONDS = 60
# Requests that wait for a thread: of one tenant, and of all unverified callers.
MAX_QUEUED = 5000
MAX_QUEUED_UNVERIFIED = 1000
# The status in the access log of a request that its client left.
CLIENT_DISCONNECTED = 499
# Limit of path and query together.
MAX_URL_BYTES = 8190
AMBIGUOUS_LENGTH = (
    "The request has Transfer-Encoding beside Content-Length, or in HTTP/1.0, so that the end of "
    "its body is ambiguous. Send one of them, in HTTP/1.1."
)
# Responses that need no thread.
NOT_ALLOWED = AsgiResponse(405, [(b"Allow", b"GET, HEAD"), (b"Content-Length", b"0")])
ALIVE = AsgiResponse(
    200,
    [(b"Content-Type", b"application/json"), (b"Content-Length", b"16")],
    b'{"status": "ok"}',
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
REQUESTS: Final = counter(
    "konstruct_requests_total",
    "Requests to the web, without health checks. Status 4xx includes 499: the client disconnected.",
    interface=set(INTERFACES.values()),
    method=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"),
    status=("1xx", "2xx", "3xx", "4xx", "5xx"),
)
REQUEST_SECONDS: Final = histogram(
    "konstruct_request_seconds",
    "How long requests took, with the wait for a reply and the end of a stream.",
    interface=set(INTERFACES.values()),
)
# Shares for work that no caller has requested.
HEALTH_CHECK = Share("health", is_verified=True)
WAITERS = Share("waiters", is_verified=True)


class Handler(BaseHandler):
    """The ASGI application."""

    def __init__(self) -> None:
        super().__init__()
        self.load_middleware()
        signals.got_request_exception.connect(_record_exception)
        self._pool = Pool(
            threads=settings.WEB_THREADS,
            max_queued=MAX_QUEUED,
            max_queued_unverified=MAX_QUEUED_UNVERIFIED,
        )
        self._callers = Callers(self._run_in_thread)
        self._readiness_task: asyncio.Task[AsgiResponse] | None = None
        cache_url = str(settings.CACHES["default"]["LOCATION"])
        self._partial_replies = PartialReplies(cache_url)
        self._waiters = ReplyWaiters(cache_url, self._find_settled, self._partial_replies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or start and stop the process."""
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        elif scope["type"] != "http":
            raise ValueError(f"only HTTP is served here, not {scope['type']}")
        elif has_ambiguous_length(scope) or scope["path"] not in (LIVE, READY):
            await self._serve(scope, receive, send)
        elif scope["method"] not in ("GET", "HEAD"):
            await NOT_ALLOWED.send(send, close=False)
        else:
            answer = ALIVE if scope["path"] == LIVE else await self._check_readiness(scope)
            await answer.send(send, close=False)

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        load_in_background()
        traces.start("web")
        logger.info("Konstruct %s: web process starts", __version__)
        # konstruct/web/worker.py calls it when the process stops.
        scope["state"]["stop_waiting"] = self._waiters.stop
        heartbeat = asyncio.create_task(self._write_heartbeats())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        heartbeat.cancel()
        await self._waiters.close()
        await self._partial_replies.close()
        self._pool.close()
        await asyncio.to_thread(traces.stop)
        await send({"type": "lifespan.shutdown.complete"})

    async def _write_heartbeats(self) -> None:
        # Ends: when the process stops. It pauses after each heartbeat.
        while True:
            with suppress(Overloaded):
                await self._run_in_thread(HEALTH_CHECK, write_heartbeat, WEB)
            await asyncio.sleep(INTERVAL_SECONDS)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, and write it to the access log."""
        started = time.perf_counter()
        clear_contextvars()
        scope["path"] = path_of(scope)
        is_traced = not scope["path"].startswith(HEALTH)
        with traces.request_span(scope) if is_traced else nullcontext():
            await self._serve_traced(scope, receive, send, started)

    async def _serve_traced(
        self, scope: Scope, receive: Receive, send: Send, started: float
    ) -> None:
        """Serve one request in its span; `started` is by time.perf_counter()."""
        method, path = scope["method"], scope["raw_path"].decode("ascii", "backslashreplace")
        status, outage = 500, ""
        try:
            answer = await self._answer(scope, receive, send)
            status, outage = answer.status, answer.outage
        except ClientDisconnected:
            status = CLIENT_DISCONNECTED
        finally:
            if not scope["path"].startswith(HEALTH):
                seconds = time.perf_counter() - started
                milliseconds = seconds * 1000
                interface = interface_of(scope["path"])
                status_class = f"{status // 100}xx"
                REQUESTS.of(interface=interface, method=method, status=status_class).inc()
                REQUEST_SECONDS.of(interface=interface).observe(seconds)
                bind_ids_of_scope(scope)
                traces.set_attributes(
                    tenant_id=log_ids().get("tenant_id"), interface=interface, status=status
                )
                access_log.log(
                    logging.ERROR if outage else logging.INFO,
                    "%s %s %s %.0f ms%s",
                    *(method, path, status, milliseconds, outage and f": {outage}"),
                    extra=fields(
                        method=method,
                        path=path,
                        status=status,
                        milliseconds=round(milliseconds, 1),
                    ),
                )

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> AsgiResponse:
        """Read the request, send the response, and return it. Raises ClientDisconnected."""
        if has_ambiguous_length(scope):
            return await _refuse(scope, send, Problem.of_status(400, AMBIGUOUS_LENGTH))
        if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_URL_BYTES:
            return await _refuse(scope, send, Problem.of_status(414))
        try:
            body = await read_body(
                receive,
                declared_length=content_length(scope),
                max_bytes=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
                timeout_seconds=BODY_TIMEOUT_SECONDS,
            )
        except BodyTooSlow:
            return await _refuse(scope, send, Problem.of_status(408))
        request = Request(scope, body)
        try:
            return await self._answer_while_connected(scope, request, body, receive, send)
        except TooManyUnverified as error:
            problem = Problem.of_status(429, headers={"Retry-After": str(error.retry_after)})
            return await _refuse(scope, send, problem)
        except Overloaded:
            busy = "Too many requests are waiting to be answered. Try again in a moment."
            problem = Problem.of_status(503, busy, headers={"Retry-After": "1"})
            return await _refuse(scope, send, problem)
        finally:
            if request.claim_body():
                body.file.close()

    async def _answer_while_connected(
        self, scope: Scope, request: Request, body: Body, receive: Receive, send: Send
    ) -> AsgiResponse:
        """Answer a request. Raises ClientDisconnected if the client closes the connection."""
        disconnected: asyncio.Future[None] = (
            asyncio.create_task(_wait_for_disconnect(receive))
            if body.is_complete
            else asyncio.get_running_loop().create_future()
        )
        try:
            answer = await _while_connected(disconnected, self._answer_in_thread(request))
            bind_ids_of_scope(scope)  # for other threads
            if (deferred := answer.deferred) is not None and answer.complete is not None:
                wait = self._waiters.wait(deferred.tenant_id, deferred.message_id, deferred.seconds)
                await _while_connected(disconnected, wait)
                # If no thread is free, send the response from before the wait.
                with suppress(Overloaded):
                    answer = await self._run_in_thread(request.share, answer.complete)
            if (streaming := answer.streaming) is not None:
                chunks = stream_reply(
                    streaming,
                    self._waiters,
                    self._partial_replies,
                    lambda sent: self._run_in_thread(request.share, streaming.end, sent),
                    lambda: self._callers.is_still_valid(request, request.share),
                )
                answer = replace(answer, chunks=chunks)
            await _while_connected(disconnected, answer.send(send, close=not body.is_complete))
            return answer
        finally:
            disconnected.cancel()

    async def _answer_in_thread(self, request: Request) -> AsgiResponse:
        """Run Django for a request, in a thread of its caller's share."""
        request.share = await self._callers.share_of(request)
        return await self._pool.run(request.share, copy_context().run, self._run_django, request)

    async def _check_readiness(self, scope: Scope) -> AsgiResponse:
        """Return the response of /health/ready. Concurrent requests share one check.

        Anonymous callers therefore cause no extra checks, and do not delay a load balancer.
        """
        if self._readiness_task is None or self._readiness_task.done():
            request = ASGIRequest(scope, BytesIO())
            check = self._run_in_thread(HEALTH_CHECK, _readiness_answer, request)
            # In an empty context: the task of a connection has the ids of its last request.
            self._readiness_task = asyncio.create_task(check, context=Context())
        return await asyncio.shield(self._readiness_task)

    async def _run_in_thread(
        self, share: Share, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function in a thread, between Django's request signals, in this task's context."""

        def call() -> T:
            signals.request_started.send(sender=Handler)
            try:
                return function(*args, **kwargs)
            finally:
                signals.request_finished.send(sender=Handler)

        return await self._pool.run(share, copy_context().run, call)

    def _run_django(self, request: Request) -> AsgiResponse:
        """Run Django's middleware and view. Raises ClientDisconnected if the client is gone."""
        if not request.claim_body():
            raise ClientDisconnected
        set_script_prefix("/")
        signals.request_started.send(sender=self.__class__, scope=request.scope)
        response: Any = self.get_response(request)
        if request.resolver_match is not None:
            route = f"/{request.resolver_match.route}"
            traces.set_attributes(name=f"{traces.method_of(request.scope)} {route}", route=route)
        try:
            if not response.streaming:
                return asgi_response(request, response)
            answer = AsgiResponse(response.status_code, headers_of(response))
            if request.method == "HEAD":
                return answer
            if isinstance(response, FileResponse):
                response.block_size = CHUNK_BYTES
            file = tempfile.SpooledTemporaryFile(max_size=MAX_BYTES_IN_MEMORY)  # noqa: SIM115
            try:
                file.writelines(response)
                file.seek(0)
            except BaseException:
                file.close()
                raise
            return replace(answer, chunks=file_chunks(file))
        finally:
            response.close()  # sends request_finished

    async def _find_settled(
        self, tenant_id: UUID, message_ids: Collection[UUID]
    ) -> Collection[UUID]:
        def read_settled() -> Collection[UUID]:
            with tenant_scope(tenant_id, pinned=True):
                return settled_messages(list(message_ids))

        return await self._run_in_thread(WAITERS, read_settled)


def interface_of(path: str) -> str:
    """Return the interface that serves a path; "" for other paths."""
    return INTERFACES.get(path.lstrip("/").partition("/")[0], "")


def _record_exception(**kwargs: Any) -> None:
    if isinstance(error := sys.exception(), Exception):
        traces.record_error(error)


def _readiness_answer(request: ASGIRequest) -> AsgiResponse:
    response = ready(request)
    response.headers["Content-Length"] = str(len(response.content))
    return asgi_response(request, response)


async def _refuse(scope: Scope, send: Send, problem: Problem) -> AsgiResponse:
    """Refuse a request, and close the connection."""
    answer = asgi_problem_response(ASGIRequest(scope, BytesIO()), problem)
    await answer.send(send, close=True)
    return answer


async def _wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client closes the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _while_connected(disconnected: "asyncio.Future[None]", work: Coroutine[Any, Any, T]) -> T:
    """Await the work. Raises ClientDisconnected if the client closes the connection first."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait((task, disconnected), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnected
        return task.result()
    finally:
        task.cancel()
