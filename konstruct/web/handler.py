"""Django's ASGI handler, and how many requests of a caller have a thread at once.

Synchronous requests run in a bounded pool of threads. A request counts for a tenant if its key or
session was verified before its body is read: a key and a host name a tenant, and both can be
forged. Verified credentials are remembered for a minute. This grants no access: Django
authenticates each request.

All middleware and the view of a request run in one call, in one thread. A response that waits for a
reply is returned by that call first, so that a waiting request holds no thread and no connection:
the event loop waits, and a second call in a thread completes the response.
"""

import asyncio
import hashlib
import logging
import sys
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from typing import IO, Any, Final, ParamSpec, TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

from corsheaders.middleware import CorsMiddleware
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.middleware.gzip import GZipMiddleware

from konstruct import middleware
from konstruct.api.http.problems import Problem, accepts_api_keys, problem_response
from konstruct.channels.slack.web_api import SignatureInvalid, verified_body
from konstruct.orchestrator import replies
from konstruct.web.replies import POLL_SECONDS, Replies
from tenants import context, http, traces

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# --- Callers --------------------------------------------------------------------------------------

# The longest wait of a request for a thread: a tenant may send a thousand at once.
MAX_WAIT_SECONDS: Final = 60.0
# One tenant has at most half of the threads, and all unverified callers together an eighth: two of
# 16. An address has one of them.
MAX_FRACTION_OF_ONE: Final = 1 / 2
MAX_FRACTION_UNVERIFIED: Final = 1 / 8
# A verified key or session is unverified again after this time without a request.
FRESH_SECONDS: Final = 60.0
# The table of a process then takes a few megabytes.
MAX_REMEMBERED_CALLERS: Final = 20_000
SLACK: Final = "slack"
OPERATORS: Final = "operators"


class Overloaded(Exception):
    """No thread was free for a caller within MAX_WAIT_SECONDS."""


@dataclass
class Caller:
    """The caller of a request, in its ASGI scope under "konstruct.caller"."""

    digest: str
    """Of the credentials; "" without any."""
    name: str = ""
    """The tenant, OPERATORS or SLACK; "" if the credentials are not verified."""


class Request(ASGIRequest):
    """A request of the web process."""

    waits_in_event_loop = True

    def __init__(self, scope: Any, body_file: IO[bytes]) -> None:
        super().__init__(scope, body_file)
        # The bytes that arrived, or were declared. A client need not send Content-Length.
        if (length := scope.get("konstruct.body_length")) is not None:
            self.META["CONTENT_LENGTH"] = str(length) if length else ""
        self.caller: Caller = scope["konstruct.caller"]


class Callers:
    """The verified callers and their limits. Use it in one event loop."""

    def __init__(self, threads: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._verified: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._max_of_one = max(1, int(threads * MAX_FRACTION_OF_ONE))
        self._unverified = asyncio.Semaphore(max(1, int(threads * MAX_FRACTION_UNVERIFIED)))
        self._limits: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def recall(self, caller: Caller, *, max_age: float = FRESH_SECONDS) -> bool:
        """Set the name of a caller with remembered credentials. Return whether they are."""
        name, verified_at = self._verified.get(caller.digest, ("", 0.0))
        caller.name = name if self._clock() - verified_at < max_age else ""
        return bool(caller.name)

    def remember(self, caller: Caller) -> None:
        """Remember the credentials of a caller; forget them if it has no name."""
        self._verified.pop(caller.digest, None)
        if caller.name:
            self._verified[caller.digest] = (caller.name, self._clock())
            if len(self._verified) > MAX_REMEMBERED_CALLERS:
                self._verified.popitem(last=False)

    @asynccontextmanager
    async def turn(self, request: Request) -> AsyncIterator[None]:
        """Wait until a request may have a thread, which it has inside the block.

        Raises Overloaded if it was not the caller's turn within MAX_WAIT_SECONDS.
        """
        if name := request.caller.name or _slack(request):
            limits = [self._limit(name, self._max_of_one)]
        else:
            address = http.throttled_address(http.address_of(request))
            limits = [self._limit(address, 1), self._unverified]
        async with AsyncExitStack() as places:
            try:
                async with asyncio.timeout(MAX_WAIT_SECONDS):
                    for limit in limits:
                        await places.enter_async_context(limit)
            except TimeoutError as error:
                raise Overloaded(name) from error
            yield

    def _limit(self, name: str, most: int) -> asyncio.Semaphore:
        limit = self._limits.get(name)
        if limit is None:
            self._limits[name] = limit = asyncio.Semaphore(most)
        return limit


def caller_of(scope: Any) -> Caller:
    """Return the caller of a request, with the digest of its key, or of its host and session."""
    headers = dict(scope["headers"])
    key, cookies = headers.get(b"authorization", b""), headers.get(b"cookie", b"")
    has_session = not key and f"{settings.SESSION_COOKIE_NAME}=".encode() in cookies
    session = headers.get(b"host", b"") + b"\0" + cookies if has_session else b""
    credentials = key or session
    return Caller(hashlib.sha256(credentials).hexdigest() if credentials else "")


def _name_caller(request: Any) -> HttpResponse:
    key_lookup = getattr(request, "key_lookup", None)
    if key_lookup is not None and key_lookup.key is not None:
        request.caller.name = key_lookup.text.tenant_id.hex
    elif request.user.is_active and request.user.is_staff:
        request.caller.name = request.tenant.id.hex if request.tenant else OPERATORS
    return HttpResponse()


# Sets the name of a caller with a valid key or session, and returns a response: a 503 if a database
# is down. Middleware that a response needs, and that which authenticates.
verify: Any = _name_caller
for _middleware in (
    middleware.ApiKeyTenantMiddleware,
    AuthenticationMiddleware,
    http.SessionMiddleware,
    http.TenantMiddleware,
    middleware.ProblemMiddleware,
    CorsMiddleware,
    middleware.RequestIdMiddleware,
):
    verify = convert_exception_to_response(_middleware(verify))


def _slack(request: Request) -> str:
    """Return SLACK if Slack has signed the request: microseconds of hashing, and no query."""
    if "X-Slack-Signature" not in request.headers:
        return ""
    try:
        verified_body(request)
    except SignatureInvalid:
        return ""
    return SLACK


# --- The handler ----------------------------------------------------------------------------------

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
