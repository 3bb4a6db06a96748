"""Django's ASGI handler. Synchronous requests run in a bounded pool of threads.

All middleware and the view of a request run in one call, in one thread. A response that waits for a
reply is returned by that call first, so that a waiting request holds no thread and no connection:
the event loop waits, and a second call in a thread completes the response.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from http import HTTPStatus
from io import BytesIO
from typing import Any, Final, ParamSpec, TypeVar
from uuid import UUID

from django.conf import settings
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.middleware.gzip import GZipMiddleware

from konstruct.api.http.problems import Problem, accepts_api_keys, problem_response
from konstruct.orchestrator import replies
from konstruct.web.callers import Caller, Callers, Overloaded, Request, caller_of, verify
from konstruct.web.replies import POLL_SECONDS, Replies
from tenants import context, http, traces

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# The caller of an open stream is verified again after this time.
RECHECK_SECONDS: Final = 5.0
# A comment of server-sent events, so that no proxy closes a silent connection.
KEEP_ALIVE: Final = b": waiting\n\n"
KEEP_ALIVE_SECONDS: Final = 10.0
# There may be more after a part.
READ_AGAIN_SECONDS: Final = 0.1
# Responses to a request with a key or session that is not valid any more.
REFUSALS: Final = (302, 401, 403)
BUSY: Final = Problem.of_status(
    503,
    "Too many requests are waiting to be answered. Try again in a moment.",
    headers={"Retry-After": "1"},
)

_gzip = GZipMiddleware(lambda request: HttpResponse())


class Handler(ASGIHandler):
    """Django's handler, with limits for callers, and with requests that wait."""

    request_class = Request

    def __init__(self) -> None:
        super().__init__()
        signals.got_request_exception.connect(_record_exception)
        self.callers = Callers(settings.WEB_THREADS)
        self.threads = ThreadPoolExecutor(settings.WEB_THREADS, thread_name_prefix="web")
        self.replies = Replies(
            str(settings.CACHES["default"]["LOCATION"]),
            lambda tenant_id, ids: self._in_thread(_find_settled, tenant_id, ids),
        )

    def load_middleware(self, is_async: bool = False) -> None:
        """Load the middleware for synchronous requests, whatever Django's handler asks for."""
        super().load_middleware(is_async=False)

    async def identify(self, scope: Any) -> HttpResponseBase | None:
        """Verify the credentials of a request before its body is read.

        Return a response if they cannot be verified now, because the database is down.
        """
        caller = scope["konstruct.caller"] = caller_of(scope)
        if not caller.digest or self.callers.recall(caller):
            return None
        request = Request(scope, BytesIO())
        try:
            async with self.callers.turn(request):
                # Another request with the same credentials may have been verified meanwhile.
                if not self.callers.recall(caller):
                    response = await self._in_thread(verify, request)
                    self.callers.remember(caller)
                    if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                        scope["konstruct.outage"] = getattr(request, "outage", "")
                        return response
        except Overloaded:
            return refusal(request, BUSY)
        return None

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, until its client leaves.

        Django's own method sends its signals in one thread for all requests of the process, in
        which the requests of a tenant would wait for those of another.
        """
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with body:
            request, error = self.create_request(scope, body)
            answer = asyncio.create_task(self._answer(request, error, send))
            leave = asyncio.create_task(self.listen_for_disconnect(receive))
            try:
                await asyncio.wait((answer, leave), return_when=asyncio.FIRST_COMPLETED)
            finally:
                answer.cancel()
                leave.cancel()
                await asyncio.wait((answer, leave))
            if not leave.cancelled():
                leave.exception()  # RequestAborted
            if not answer.cancelled():
                answer.result()

    async def _answer(self, request: Any, error: Any, send: Any) -> None:
        await self.send_response(error or await self.get_response_async(request), send)

    async def get_response_async(self, request: Any) -> HttpResponseBase:
        """Return the response of a request, after it has waited if the response is deferred."""
        try:
            return await self._response_of(request)
        except Overloaded:
            return refusal(request, BUSY)
        finally:
            request.scope["konstruct.outage"] = getattr(request, "outage", "")

    async def _response_of(self, request: Request) -> HttpResponseBase:
        response: Any = await self._in_turn(request, self._respond, request)
        if response.status_code not in REFUSALS:
            self.callers.remember(request.caller)
        if (stream := getattr(response, "stream", None)) is not None:
            del response.headers["Content-Length"]  # of the opening only
            chunks = self._stream(request, stream)
            return StreamingHttpResponse(
                chunks, status=response.status_code, headers=response.headers
            )
        if (repeated := getattr(response, "repeated", None)) is not None:
            del response.headers["Content-Length"]
            chunks = self._repeat(request, response.content, repeated)
            return StreamingHttpResponse(chunks, headers=response.headers)
        if (deferred := getattr(response, "deferred", None)) is not None:
            with suppress(Overloaded):  # then the response is from before the wait
                if deferred.is_ready is not None:
                    await self._wait_until(request, deferred.is_ready, deferred.seconds)
                else:
                    with self.replies.watch(deferred.tenant_id, deferred.message_id) as watch:
                        await watch.over(deferred.seconds)
                await self._in_turn(request, _complete, request, response, deferred)
        return response

    async def _wait_until(
        self, request: Request, is_ready: Callable[[], bool], seconds: float
    ) -> None:
        """Return when it is ready, after `seconds`, or when the process stops."""
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + seconds, READ_AGAIN_SECONDS
        while (left := deadline - loop.time()) > 0 and not self.replies.is_stopping:
            if await self._in_turn(request, is_ready):
                return
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, POLL_SECONDS)

    async def _stream(
        self, request: Request, stream: replies.StreamingResponse
    ) -> AsyncGenerator[bytes]:
        """Yield the growing text of a reply, and then the end."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + stream.seconds
        sent = ""
        yield stream.opening
        with self.replies.watch(stream.tenant_id, stream.message_id) as watch:
            self.replies.read(watch)
            # Ends: at the deadline.
            while not (watch.is_over or watch.is_broken) and loop.time() < deadline:
                has_changed = await watch.change(min(KEEP_ALIVE_SECONDS, deadline - loop.time()))
                if not await self._is_allowed(request):
                    break
                if text := "" if watch.is_over else watch.take():
                    sent += text
                    yield stream.piece(text)
                elif not has_changed:
                    self.replies.read(watch)
                    yield KEEP_ALIVE
        try:
            is_allowed = await self._is_allowed(request)
            yield await self._in_turn(request, stream.end, sent) if is_allowed else stream.refused
        except Overloaded:
            yield stream.overloaded

    async def _repeat(
        self, request: Request, opening: bytes, repeated: replies.RepeatedResponse
    ) -> AsyncGenerator[bytes]:
        """Yield the opening and each new part, until the deadline, an outage or the process's end.

        A client that continues after the last part that it has received loses nothing.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + repeated.seconds
        yield opening or KEEP_ALIVE
        part, sent_at = opening, loop.time()
        while loop.time() < deadline and not self.replies.is_stopping:
            await asyncio.sleep(READ_AGAIN_SECONDS if part else POLL_SECONDS)
            if not await self._is_allowed(request):
                yield repeated.refused
                return
            try:
                part = await self._in_turn(request, repeated.read)
            except Overloaded:
                part = b""
            except Exception as error:  # the next request gets the error
                logger.warning("A stream was ended: %s", error)
                return
            if part or loop.time() - sent_at > KEEP_ALIVE_SECONDS:
                yield part or KEEP_ALIVE
                sent_at = loop.time()

    async def _is_allowed(self, request: Request) -> bool:
        """Return whether the key or session of an open stream is still valid.

        The result is kept for RECHECK_SECONDS, for all streams with the same credentials. If the
        database is down, the stream continues.
        """
        if self.callers.recall(Caller(request.caller.digest), max_age=RECHECK_SECONDS):
            return True
        # Remembered before the check, so that the other streams do not check as well.
        self.callers.remember(request.caller)
        checked = Request({**request.scope, "konstruct.caller": Caller("")}, BytesIO())
        try:
            response = await self._in_turn(request, verify, checked)
        except Overloaded:
            return True
        if checked.caller.name or response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return True
        self.callers.remember(Caller(request.caller.digest))
        return False

    async def _in_turn(
        self, request: Request, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function in a thread when it is the turn of the request's caller."""
        async with self.callers.turn(request):
            return await self._in_thread(function, *args, **kwargs)

    async def _in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in a thread, between Django's request signals, in this task's context.

        Cancelling waits until the function has returned: it uses the request to its end.
        """

        def call() -> T:
            signals.request_started.send(sender=Handler)
            try:
                return function(*args, **kwargs)
            finally:
                signals.request_finished.send(sender=Handler)

        queued = self.threads.submit(copy_context().run, call)
        running = asyncio.wrap_future(queued)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if not queued.cancel():
                await asyncio.wait([running])
            raise

    def _respond(self, request: Request) -> HttpResponseBase:
        """Run Django's middleware and view."""
        response: Any = self.get_response(request)
        if request.resolver_match is not None:
            route = f"/{request.resolver_match.route}"
            traces.set_attributes(name=f"{traces.method_of(request.scope)} {route}", route=route)
        if response.streaming and not response.is_async:
            # A static file. A thread that sent it would wait for the slowest client.
            chunks = [] if request.method == "HEAD" else list(response)
            response.streaming_content = _send_each(chunks)
        response.close()
        return response


def refusal(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Return an error for a request that no view sees, in the error format of its path."""
    if accepts_api_keys(request.path):
        response = problem_response(request, problem)
    else:
        response = http.refuse(request, HTTPStatus(problem.status), problem.detail)
        for name, value in problem.headers.items():
            response.headers[name] = value
    response.headers["Content-Length"] = str(len(response.content))
    return response


def _complete(request: Request, response: HttpResponse, deferred: replies.DeferredResponse) -> None:
    """Update a response after the wait. The middleware ran before; only gzip runs again."""
    deferred.finish()
    del response.headers["Content-Encoding"]
    response.headers["Content-Length"] = str(len(response.content))
    _gzip.process_response(request, response)


def _find_settled(tenant_id: UUID, message_ids: Collection[UUID]) -> Collection[UUID]:
    with context.tenant_scope(tenant_id):
        return replies.settled_messages(list(message_ids))


async def _send_each(chunks: Sequence[bytes]) -> AsyncGenerator[bytes]:
    for chunk in chunks:
        yield chunk


def _record_exception(**kwargs: Any) -> None:
    if isinstance(error := sys.exception(), Exception):
        traces.record_error(error)
