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
from io import BytesIO
from typing import Any, Final, ParamSpec, TypeVar
from uuid import UUID

from django.conf import settings
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.middleware.gzip import GZipMiddleware

from konstruct.api.http.problems import Problem, problem_response
from konstruct.orchestrator import replies
from konstruct.web.callers import FRESH_SECONDS, Caller, Callers, Overloaded, Request, verify
from konstruct.web.replies import POLL_SECONDS, Replies
from tenants import traces
from tenants.context import tenant_scope

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

    async def identify(self, scope: Any, max_age: float = FRESH_SECONDS) -> HttpResponseBase | None:
        """Name the caller of a request, before its body is read, if its credentials are valid.

        They are verified unless that was done in the last `max_age` seconds. Return a response if
        they cannot be verified now, because the database is down.
        """
        request = Request(scope, BytesIO())
        caller = request.caller
        if not caller.digest or self.callers.recall(caller, max_age):
            return None
        try:
            async with self.callers.turn(request):
                # Another request with the same credentials may have been verified meanwhile.
                if self.callers.recall(caller, max_age):
                    return None
                caller.name = ""
                response = await self._in_thread(verify, request)
        except Overloaded:
            return problem_response(request, BUSY)
        if response.status_code >= 500:
            scope["konstruct.outage"] = getattr(request, "outage", "")
            return response
        self.callers.remember(caller)
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
            try:
                async with asyncio.TaskGroup() as tasks:
                    leave = tasks.create_task(self.listen_for_disconnect(receive))
                    await self.send_response(error or await self.get_response_async(request), send)
                    leave.cancel()
            except* RequestAborted:
                pass

    async def get_response_async(self, request: Any) -> HttpResponseBase:
        """Return the response of a request, after it has waited if the response is deferred."""
        try:
            return await self._response_of(request)
        except Overloaded:
            return problem_response(request, BUSY)
        finally:
            request.scope["konstruct.outage"] = getattr(request, "outage", "")

    async def _response_of(self, request: Request) -> HttpResponseBase:
        response: Any = await self._in_turn(request, self._respond, request)
        if response.status_code not in REFUSALS:
            self.callers.remember(request.caller)
        chunks = None
        if (stream := getattr(response, "stream", None)) is not None:
            chunks = self._stream(request, stream)
        elif (repeated := getattr(response, "repeated", None)) is not None:
            chunks = self._repeat(request, response.content, repeated)
        if chunks is not None:
            del response.headers["Content-Length"]  # of the opening only
            return StreamingHttpResponse(
                chunks, status=response.status_code, headers=response.headers
            )
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
            has_changed = True
            # Ends: at the deadline.
            while not watch.is_over and loop.time() < deadline:
                await self.replies.read(watch)
                if watch.is_broken or not await self._is_allowed(request):
                    break
                if text := watch.take():
                    sent += text
                    yield stream.piece(text)
                elif not has_changed:
                    yield KEEP_ALIVE
                has_changed = await watch.change(min(KEEP_ALIVE_SECONDS, deadline - loop.time()))
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
        caller = Caller(request.caller.digest, request.caller.name)
        scope = {**request.scope, "konstruct.caller": caller}
        if await self.identify(scope, RECHECK_SECONDS) is None:
            return bool(caller.name)
        self.callers.remember(request.caller)
        return True

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
            response.streaming_content = _send_each(list(response))
        response.close()
        return response


def _complete(request: Request, response: HttpResponse, deferred: replies.DeferredResponse) -> None:
    """Update a response after the wait. The middleware ran before; only gzip runs again."""
    deferred.finish()
    del response.headers["Content-Encoding"]
    response.headers["Content-Length"] = str(len(response.content))
    _gzip.process_response(request, response)


def _find_settled(tenant_id: UUID, message_ids: Collection[UUID]) -> Collection[UUID]:
    with tenant_scope(tenant_id):
        return replies.settled_messages(list(message_ids))


async def _send_each(chunks: Sequence[bytes]) -> AsyncGenerator[bytes]:
    for chunk in chunks:
        yield chunk


def _record_exception(**kwargs: Any) -> None:
    if isinstance(error := sys.exception(), Exception):
        traces.record_error(error)
