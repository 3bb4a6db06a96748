"""Who sends a request, and how many requests of a caller have a thread at once.

A request counts for a tenant after its key or session was verified: a key and a host name a tenant,
and both can be forged. The first request with a key is verified in one of the few places for
unverified callers, and moves to its tenant's limit at once. The memory of verified keys grants no
access: each request is authenticated.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import IO, Any, Final
from uuid import UUID
from weakref import WeakValueDictionary

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest

from konstruct.api.auth.keys import bearer_key, parse_key
from konstruct.channels.slack.web_api import SignatureInvalid, verified_body
from tenants.http.client_address import address_of, throttled_address
from tenants.http.middleware import host_name

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


class Request(ASGIRequest):
    """A request of the web process. Middleware calls `verify` with the caller that it has found."""

    waits_in_event_loop = True

    def __init__(self, scope: Any, body_file: IO[bytes]) -> None:
        super().__init__(scope, body_file)
        # The bytes that arrived, or were declared. A client need not send Content-Length.
        if (length := scope.get("konstruct.body_length")) is not None:
            self.META["CONTENT_LENGTH"] = str(length) if length else ""
        self.key = parse_key(bearer_key(self.headers.get("Authorization", "")) or "")
        cookie = "" if self.key else self.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
        self.has_session = bool(cookie)
        host = host_name(self.META.get("HTTP_HOST", "")) if cookie else ""
        credentials = "\0".join((str(self.key), host, cookie))
        self.digest = hashlib.sha256(credentials.encode(errors="surrogatepass")).hexdigest()
        self.verified_as = ""
        self.must_run_again = False
        self.places = ExitStack()
        """The places that the request has in limits, to give them back."""
        self.on_verified: Callable[[str], bool] = bool

    def verify(self, tenant_id: UUID | None) -> bool:
        """Count this request for a tenant, or for the operators (None), and not for its address.

        Call it in the request's thread. If it returns False, all threads of the tenant are in use:
        the caller answers at once, and the request runs again when it is its tenant's turn.
        """
        name = OPERATORS if tenant_id is None else tenant_id.hex
        self.must_run_again = not self.on_verified(name)
        return not self.must_run_again


class Callers:
    """The limits of callers. Use it in one event loop."""

    def __init__(self, threads: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._verified: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._max_of_one = max(1, int(threads * MAX_FRACTION_OF_ONE))
        self._unverified = asyncio.Semaphore(max(1, int(threads * MAX_FRACTION_UNVERIFIED)))
        self._limits: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def name_of(self, request: Request, *, max_age: float = FRESH_SECONDS) -> str:
        """Return the verified caller of a request; "" if it is unverified."""
        name, verified_at = self._verified.get(request.digest, ("", 0.0))
        return name if self._clock() - verified_at < max_age else ""

    def remember(self, request: Request, name: str) -> None:
        """Remember the credentials of a request as those of a caller; "": forget them."""
        self._verified.pop(request.digest, None)
        if name:
            self._verified[request.digest] = (name, self._clock())
            if len(self._verified) > MAX_REMEMBERED_CALLERS:
                self._verified.popitem(last=False)

    @asynccontextmanager
    async def turn(self, request: Request) -> AsyncIterator[None]:
        """Wait until a request may have a thread, which it has inside the block.

        Raises Overloaded if it was not the caller's turn within MAX_WAIT_SECONDS.
        """
        loop = asyncio.get_running_loop()
        name = request.verified_as or self.name_of(request) or _slack(request)
        with request.places as places:
            try:
                async with asyncio.timeout(MAX_WAIT_SECONDS):
                    if not name:
                        address = throttled_address(address_of(request))
                        await _enter(self._limit(address, 1), places)
                        await _enter(self._unverified, places)
                        # Another request with the same key may have been verified meanwhile.
                        if name := self.name_of(request):
                            places.close()
                    if name:
                        await _enter(self._limit(name, self._max_of_one), places)
            except TimeoutError as error:
                raise Overloaded(name) from error

            def on_verified(found: str) -> bool:
                if name:
                    request.verified_as = found
                    return True
                moving = asyncio.run_coroutine_threadsafe(self._move(request, found), loop)
                return moving.result(MAX_WAIT_SECONDS)

            request.on_verified = on_verified
            yield

    async def _move(self, request: Request, name: str) -> bool:
        """Move a running request from the limits of its address to those of its tenant."""
        self.remember(request, name)
        limit = self._limit(name, self._max_of_one)
        if limit.locked():
            return False
        request.places.close()
        await _enter(limit, request.places)
        request.verified_as = name
        return True

    def _limit(self, name: str, most: int) -> asyncio.Semaphore:
        limit = self._limits.get(name)
        if limit is None:
            self._limits[name] = limit = asyncio.Semaphore(most)
        return limit


async def _enter(limit: asyncio.Semaphore, places: ExitStack) -> None:
    await limit.acquire()
    places.callback(limit.release)


def _slack(request: Request) -> str:
    """Return SLACK if Slack has signed the request: microseconds of hashing, and no query."""
    if "X-Slack-Signature" not in request.headers:
        return ""
    try:
        verified_body(request)
    except SignatureInvalid:
        return ""
    return SLACK
