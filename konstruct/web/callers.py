"""Who sends a request, and how many requests of a caller have a thread at once.

A request counts for a tenant if its key or session was verified before its body is read: a key and
a host name a tenant, and both can be forged. Verified credentials are remembered for a minute. This
grants no access: Django authenticates each request.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import IO, Any, Final
from weakref import WeakValueDictionary

from corsheaders.middleware import CorsMiddleware
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.core.handlers.asgi import ASGIRequest
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpResponse

from konstruct.channels.slack.web_api import SignatureInvalid, verified_body
from konstruct.middleware import ApiKeyTenantMiddleware, ProblemMiddleware, RequestIdMiddleware
from tenants.http import SessionMiddleware, TenantMiddleware, address_of, throttled_address

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
            address = throttled_address(address_of(request))
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
    *(ApiKeyTenantMiddleware, AuthenticationMiddleware, SessionMiddleware, TenantMiddleware),
    *(ProblemMiddleware, CorsMiddleware, RequestIdMiddleware),
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
