"""Django behind an event loop, with its synchronous requests in a bounded pool of threads.

Django's own ASGI handler makes a thread, and with it a database connection, for each request that
runs; this one has `WEB_THREADS` of them. Whatever only waits is in the event loop: connections,
bodies that arrive, responses that are taken slowly, and callers that wait for replies.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection, Coroutine
from contextvars import Context, copy_context
from dataclasses import replace
from io import BytesIO
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from django.conf import settings
from django.core import signals
from django.core.handlers.asgi import ASGIRequest
from django.core.handlers.base import BaseHandler
from django.http import FileResponse
from django.urls import set_script_prefix
from structlog.contextvars import clear_contextvars

from konstruct.api.health import ready
from konstruct.api.http.errors.problems import Problem
from konstruct.logs import fields
from konstruct.orchestrator.replies.reply_wait import Live
from konstruct.orchestrator.replies.status import settled_among
from konstruct.web.answers import Answer, Send, answer_of, headers_of, refusal
from konstruct.web.bodies import Body, BodyTooSlow, ClientGone, Receive, read_body
from konstruct.web.callers import Callers, TooManyUnverified
from konstruct.web.live import LiveBody
from konstruct.web.pool import Overloaded, Pool, Share
from konstruct.web.scopes import Scope, announced_length, is_framed_twice, path_of
from konstruct.web.streams import PIECE, Stream, whole_body
from konstruct.web.texts import Texts
from konstruct.web.waiters import Waiters
from memory.embedding.embedder import load_in_background
from tenants.context import tenant_scope
from tenants.log_context import bind_ids_of_scope

P = ParamSpec("P")
T = TypeVar("T")

access_log = logging.getLogger("konstruct.access")

HEALTH = "/health/"
LIVE = "/health/live"
READY = "/health/ready"
# A body must have arrived by then.
BODY_SECONDS = 60
# Requests that may wait for a thread: of one tenant, and of all unverified callers.
MAX_QUEUED = 5000
MAX_QUEUED_UNVERIFIED = 1000
# What the log has as the status of a request whose client did not wait for the response.
CLIENT_GONE = 499
# Bytes of path and query.
LONGEST_ADDRESS = 8190
AMBIGUOUS = (
    "The request has Transfer-Encoding beside Content-Length, or in HTTP/1.0, so that the end of "
    "its body is ambiguous. Send one of them, in HTTP/1.1."
)
# Answers of the event loop alone, as long as this process can answer at all.
NOT_ALLOWED = Answer(405, [(b"Allow", b"GET, HEAD"), (b"Content-Length", b"0")])
ALIVE = Answer(
    200,
    [(b"Content-Type", b"application/json"), (b"Content-Length", b"16")],
    b'{"status": "ok"}',
)
# For work that no caller has asked for.
HEALTH_CHECK = Share("health", is_verified=True)
WAITERS = Share("waiters", is_verified=True)


class Request(ASGIRequest):
    """A request whose response may say what it waits for: see replies/reply_wait.py."""

    waits_in_event_loop = True

    def __init__(self, scope: Scope, body: Body) -> None:
        super().__init__(scope, body.file)
        self._untaken = [True]
        self.share: Share
        # Django looks at this to refuse what is too large, also where the client did not say it.
        self.META["CONTENT_LENGTH"] = str(body.length) if body.length else ""

    def take(self) -> bool:
        """Whether the caller is the first, who closes the body: a thread, or the event loop."""
        try:
            self._untaken.pop()  # atomic, as reading and setting a flag is not
        except IndexError:
            return False
        return True


class Handler(BaseHandler):
    """The ASGI application."""

    def __init__(self) -> None:
        super().__init__()
        self.load_middleware()
        self._pool = Pool(
            threads=settings.WEB_THREADS,
            max_queued=MAX_QUEUED,
            max_queued_unverified=MAX_QUEUED_UNVERIFIED,
        )
        self._callers = Callers(self._in_thread)
        self._readiness: asyncio.Task[Answer] | None = None
        cache_url = str(settings.CACHES["default"]["LOCATION"])
        self._texts = Texts(cache_url)
        self._waiters = Waiters(cache_url, self._settled_among, self._texts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or begin and end the process."""
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        elif scope["type"] != "http":
            raise ValueError(f"only HTTP is served here, not {scope['type']}")
        elif is_framed_twice(scope) or scope["path"] not in (LIVE, READY):
            await self._serve(scope, receive, send)
        elif scope["method"] not in ("GET", "HEAD"):
            await NOT_ALLOWED.send(send, close=False)
        else:
            answer = ALIVE if scope["path"] == LIVE else await self._ready(scope)
            await answer.send(send, close=False)

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        load_in_background()
        # For konstruct/web/protocol.py: nobody is kept waiting by a process that is to end.
        scope["state"]["stop_waiting"] = self._waiters.stop
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._waiters.close()
        await self._texts.close()
        self._pool.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, and write it into the log."""
        started = time.perf_counter()
        clear_contextvars()
        scope["path"] = path_of(scope)
        sent = scope["method"], scope["raw_path"].decode("ascii", "backslashreplace")
        status, outage = 500, ""
        try:
            answer = await self._answer(scope, receive, send)
            status, outage = answer.status, answer.outage
        except ClientGone:
            status = CLIENT_GONE
        finally:
            if not scope["path"].startswith(HEALTH):
                milliseconds = (time.perf_counter() - started) * 1000
                bind_ids_of_scope(scope)
                access_log.log(
                    logging.ERROR if outage else logging.INFO,
                    *("%s %s %s %.0f ms%s", *sent, status, milliseconds, outage and f": {outage}"),
                    extra=fields(
                        method=sent[0],
                        path=sent[1],
                        status=status,
                        milliseconds=round(milliseconds, 1),
                    ),
                )

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Answer:
        """Read the request, answer it, and return the answer once it is sent.

        Raises ClientGone if the client does not wait for it.
        """
        if is_framed_twice(scope):
            return await _refuse(scope, send, Problem.of_status(400, AMBIGUOUS))
        if len(scope["raw_path"]) + len(scope["query_string"]) > LONGEST_ADDRESS:
            return await _refuse(scope, send, Problem.of_status(414))
        most_bytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        try:
            body = await read_body(
                receive,
                announced=announced_length(scope),
                most_bytes=most_bytes,
                seconds=BODY_SECONDS,
            )
        except BodyTooSlow:
            return await _refuse(scope, send, Problem.of_status(408))
        request = Request(scope, body)
        try:
            return await self._exchange(scope, request, body, receive, send)
        except TooManyUnverified as error:
            problem = Problem.of_status(429, headers={"Retry-After": str(error.retry_after)})
            return await _refuse(scope, send, problem)
        except Overloaded:
            busy = "Too many requests are waiting to be answered. Try again in a moment."
            problem = Problem.of_status(503, busy, headers={"Retry-After": "1"})
            return await _refuse(scope, send, problem)
        finally:
            if request.take():
                body.file.close()

    async def _exchange(
        self, scope: Scope, request: Request, body: Body, receive: Receive, send: Send
    ) -> Answer:
        """Answer a request that was read, as long as its client is there."""
        loop = asyncio.get_running_loop()
        stream = Stream(loop)
        begun: asyncio.Future[Answer] = loop.create_future()
        gone: asyncio.Future[None] = (
            asyncio.create_task(_gone(receive)) if body.read_to_end else loop.create_future()
        )
        call = asyncio.create_task(
            self._call(
                request,
                stream,
                lambda answer: loop.call_soon_threadsafe(begun.set_result, answer),
            )
        )
        try:
            await _first_of(call, begun, gone)
            if not call.done() and not begun.done():
                raise ClientGone
            answer = begun.result() if begun.done() else call.result()
            bind_ids_of_scope(scope)  # for what follows in other threads
            if answer.waiting is not None and answer.complete is not None:
                for_it = answer.waiting
                waited = self._waiters.wait(for_it.tenant_id, for_it.message_id, for_it.seconds)
                await _while_there(gone, waited)
                # Without a thread for it: what there was to say before the wait is still true.
                with contextlib.suppress(Overloaded):
                    answer = await self._in_thread(
                        request.share, self._complete, request, answer.complete
                    )
            if answer.live is not None:
                answer = replace(answer, stream=self._live(request, answer.live))
            await _while_there(gone, answer.send(send, close=not body.read_to_end))
            return answer
        finally:
            gone.cancel()
            call.cancel()
            stream.give_up()

    async def _call(
        self, request: Request, stream: Stream, begin: Callable[[Answer], object]
    ) -> Answer:
        """Answer a request in a thread of the share that it belongs to."""
        request.share = await self._callers.share_of(request)
        return await self._in_thread(request.share, self._respond, request, stream, begin)

    async def _ready(self, scope: Scope) -> Answer:
        """Answer whether this process is ready. Requests during a check share its result.

        Callers without a key therefore cause no further checks, and delay no load balancer.
        """
        if self._readiness is None or self._readiness.done():
            request = ASGIRequest(scope, BytesIO())
            check = self._in_thread(HEALTH_CHECK, _readiness, request)
            # In an empty context: a connection's task has the ids of its former request.
            self._readiness = asyncio.create_task(check, context=Context())
        return await asyncio.shield(self._readiness)

    async def _in_thread(
        self, share: Share, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call it in a thread of the pool, with the context variables of this task."""
        context = copy_context()
        return await self._pool.run(share, lambda: context.run(function, *args, **kwargs))

    def _respond(
        self, request: Request, stream: Stream, begin: Callable[[Answer], object]
    ) -> Answer:
        """In a thread: let Django answer. `begin` gets an answer whose body is still being made.

        Raises ClientGone if the client went before the thread came to it.
        """
        if not request.take():
            raise ClientGone
        set_script_prefix("/")
        signals.request_started.send(sender=self.__class__, scope=request.scope)
        response: Any = self.get_response(request)
        try:
            if not response.streaming:
                return answer_of(request, response)
            if isinstance(response, FileResponse):
                response.block_size = PIECE
            body, rest = (b"", None) if request.method == "HEAD" else whole_body(iter(response))
            if rest is None:
                return Answer(response.status_code, headers_of(response), body)
            answer = Answer(response.status_code, headers_of(response), stream=stream)
            begin(answer)
            stream.write(rest)
            return answer
        finally:
            response.close()  # sends request_finished

    def _complete(self, request: Request, complete: Callable[[], Answer]) -> Answer:
        """In a thread: make the answer that was waited for."""
        signals.request_started.send(sender=self.__class__, scope=request.scope)
        try:
            return complete()
        finally:
            signals.request_finished.send(sender=self.__class__)

    def _live(self, request: Request, live: Live) -> LiveBody:
        async def end(sent: str) -> bytes:
            return await self._in_thread(request.share, self._end, request, live, sent)

        return LiveBody(live, self._waiters, self._texts, end)

    def _end(self, request: Request, live: Live, sent: str) -> bytes:
        """In a thread: make the rest of a body of which so much text was sent."""
        signals.request_started.send(sender=self.__class__, scope=request.scope)
        try:
            return live.end(sent)
        finally:
            signals.request_finished.send(sender=self.__class__)

    async def _settled_among(
        self, tenant_id: UUID, message_ids: Collection[UUID]
    ) -> Collection[UUID]:
        return await self._in_thread(WAITERS, self._look, tenant_id, list(message_ids))

    def _look(self, tenant_id: UUID, message_ids: Collection[UUID]) -> Collection[UUID]:
        """In a thread: which of the tenant's messages need not be waited for any more."""
        signals.request_started.send(sender=self.__class__)
        try:
            with tenant_scope(tenant_id, pinned=True):
                return settled_among(message_ids)
        finally:
            signals.request_finished.send(sender=self.__class__)


def _readiness(request: ASGIRequest) -> Answer:
    """In a thread: check what this process needs."""
    signals.request_started.send(sender=Handler)
    try:
        response = ready(request)
        response.headers["Content-Length"] = str(len(response.content))
        return answer_of(request, response)
    finally:
        signals.request_finished.send(sender=Handler)


async def _refuse(scope: Scope, send: Send, problem: Problem) -> Answer:
    """Refuse a request, and end the connection with whatever else is on it."""
    answer = refusal(ASGIRequest(scope, BytesIO()), problem)
    await answer.send(send, close=True)
    return answer


async def _gone(receive: Receive) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first_of(*futures: "asyncio.Future[Any]") -> None:
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


async def _while_there(gone: "asyncio.Future[None]", work: Coroutine[Any, Any, T]) -> T:
    """Do the work, unless the client goes before: then raise ClientGone."""
    task = asyncio.create_task(work)
    try:
        await _first_of(task, gone)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        task.cancel()
