"""Verifies the caller of a request. The request uses the share of threads of its caller.

A query in one of the threads for unverified requests verifies the API key or the session. The
result is cached, so that a known caller does not wait for these threads. It grants no access: the
request itself checks the key or the session again.
"""

import asyncio
import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final, TypeVar, cast

from django.conf import settings
from django.contrib.auth import get_user
from django.core.exceptions import SuspiciousOperation
from django.core.handlers.asgi import ASGIRequest
from django.db import Error
from django.http import HttpRequest, HttpResponse

from konstruct.api.auth.authentication import is_valid
from konstruct.api.auth.keys import bearer_key, parse_key
from konstruct.channels.slack.web_api import SignatureInvalid, verified_body
from konstruct.web.pool import Overloaded, Share
from tenants.exceptions import KonstructError
from tenants.http.client_address import address_of, throttled_address
from tenants.http.middleware import SessionMiddleware, TenantMiddleware, host_name

V = TypeVar("V")
RunInThread = Callable[[Share, Callable[[], str | None]], Awaitable[str | None]]

# Unverified requests of each address, in each web process: at once, and the rate of refilling.
# Requests with a key, with a session and with neither have separate token buckets.
UNVERIFIED_BURST: Final = 200
UNVERIFIED_PER_SECOND: Final = 20
# A cached caller is verified again after this time, in a thread of the caller's share.
FRESH_SECONDS: Final = 60.0
# The caller of an open stream is verified again after this time.
RECHECK_SECONDS: Final = 5.0
# The tables of a process then take a few megabytes.
MAX_REMEMBERED_CALLERS: Final = 20_000
SLACK: Final = Share("slack", is_verified=True)
OPERATORS: Final = "operators"


class TooManyUnverified(Exception):
    """An address has sent too many unverified requests."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"try again in {retry_after:.1f} seconds")
        self.retry_after = math.ceil(retry_after)


class BoundedDict(OrderedDict[str, V]):
    """A dict of at most MAX_REMEMBERED_CALLERS entries. It drops the entry that was set first."""

    def __setitem__(self, key: str, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > MAX_REMEMBERED_CALLERS:
            self.popitem(last=False)


class TokenBuckets:
    """Token buckets for unverified requests, one for each address, in this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: BoundedDict[tuple[float, float]] = BoundedDict()

    def take(self, name: str) -> None:
        """Take a token from a bucket. Raises TooManyUnverified if the bucket is empty."""
        now = self._clock()
        tokens, at = self._buckets.get(name, (UNVERIFIED_BURST, now))
        tokens = min(UNVERIFIED_BURST, tokens + (now - at) * UNVERIFIED_PER_SECOND)
        is_allowed = tokens >= 1
        self._buckets[name] = (tokens - is_allowed, now)
        if not is_allowed:
            raise TooManyUnverified((1 - tokens) / UNVERIFIED_PER_SECOND)


@dataclass(frozen=True)
class Credentials:
    """The API key or the session of a request."""

    kind: str
    digest: str
    verify: Callable[[], str | None]
    """Return the name of the caller's share, or None if invalid. It queries the database."""


class Callers:
    """Finds the share of each request. Use it in one event loop."""

    def __init__(
        self, run_in_thread: RunInThread, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._run_in_thread = run_in_thread
        self._clock = clock
        self._buckets = TokenBuckets(clock)
        self._verified: BoundedDict[tuple[str, float]] = BoundedDict()
        self._verifications: dict[str, asyncio.Task[str | None]] = {}

    async def share_of(self, request: ASGIRequest) -> Share:
        """Return the share of the verified caller, or the share of the address without one.

        Raises:
            TooManyUnverified: the address has sent too many unverified requests.
            Overloaded: too many unverified requests wait for a thread.
        """
        if is_from_slack(request):
            return SLACK
        credentials = credentials_of(request)
        kind = credentials.kind if credentials else "none"
        address_key = f"{throttled_address(address_of(request))} {kind}"
        unverified = Share(address_key, is_verified=False)
        if credentials is None:
            self._buckets.take(address_key)
            return unverified
        name, since = self._verified.get(credentials.digest, (None, 0.0))
        if name is not None and self._clock() - since < FRESH_SECONDS:
            return Share(name, is_verified=True)
        is_first = credentials.digest not in self._verifications
        if is_first:
            if name is None:
                self._buckets.take(address_key)
            share = unverified if name is None else Share(name, is_verified=True)
            self._start_verification(credentials, share, name)
        verified = await asyncio.shield(self._verifications[credentials.digest])
        if verified is not None:
            return Share(verified, is_verified=True)
        if not is_first:  # the first request with the same credentials has taken a token
            self._buckets.take(address_key)
        return unverified

    async def is_still_valid(self, request: ASGIRequest, share: Share) -> bool:
        """Return whether the key or session of an open stream is still valid.

        The result is cached for RECHECK_SECONDS, for all streams with the same credentials. If the
        database is down, the stream continues.
        """
        credentials = credentials_of(request)
        if credentials is None:
            return True
        name, since = self._verified.get(credentials.digest, (None, 0.0))
        if name is not None and self._clock() - since < RECHECK_SECONDS:
            return True
        if credentials.digest not in self._verifications:
            self._start_verification(credentials, share, share.name)
        try:
            return await asyncio.shield(self._verifications[credentials.digest]) is not None
        except Overloaded:
            return True

    def _start_verification(
        self, credentials: Credentials, share: Share, known: str | None
    ) -> None:
        """Verify credentials once for all concurrent requests that have them."""
        task = asyncio.create_task(self._verify(credentials, share, known))
        self._verifications[credentials.digest] = task
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _verify(
        self, credentials: Credentials, share: Share, known: str | None
    ) -> str | None:
        try:
            name = await self._run_in_thread(share, credentials.verify)
        except Error:  # the request itself fails; a known caller stays known
            return known
        finally:
            del self._verifications[credentials.digest]
        if name is None:
            self._verified.pop(credentials.digest, None)
        else:
            self._verified[credentials.digest] = (name, self._clock())
        return name


def is_from_slack(request: ASGIRequest) -> bool:
    """Return whether Slack has signed the request: a few microseconds of hashing, and no query."""
    if "X-Slack-Signature" not in request.headers:
        return False
    try:
        verified_body(request)
    except SignatureInvalid:
        return False
    return True


def credentials_of(request: ASGIRequest) -> Credentials | None:
    """Return the API key or the session of a request, None without both."""
    key = parse_key(bearer_key(request.headers.get("Authorization", "")) or "")
    if key is not None:
        return Credentials(
            "key", _digest("key", str(key)), lambda: key.tenant_id.hex if is_valid(key) else None
        )
    session = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    if not session:
        return None
    scope = request.scope
    host = host_name(request.META.get("HTTP_HOST", ""))
    return Credentials(
        "session", _digest("session", host, session), lambda: tenant_of_session(scope)
    )


class _SessionRequest(ASGIRequest):
    """A request to read the session. An outage is logged with the real request."""

    waits_in_event_loop = True


class _SessionData(dict[str, Any]):
    """A copy of a session's data, so that Django changes the copy.

    Django replaces a session that a key of SECRET_KEY_FALLBACKS has signed, and deletes one that no
    key has signed. The request itself does that: its response sends the cookie of the new session.
    """

    def cycle_key(self) -> None:
        """Keep the session."""

    def flush(self) -> None:
        """Keep the session."""


def tenant_of_session(scope: Mapping[str, Any]) -> str | None:
    """Return the tenant (or OPERATORS) whose admin a session is logged in to, or None. It queries.

    The middleware reads host, session and user from a request without a body.
    """
    tenants: list[str] = []

    def read_tenant(request: HttpRequest) -> HttpResponse:
        tenant = request.tenant  # type: ignore[attr-defined]
        request.session = cast(Any, _SessionData(request.session.items()))
        user = cast(Any, get_user(request))
        if user.is_active and user.is_staff:
            tenants.append(tenant.id.hex if tenant else OPERATORS)
        return HttpResponse()

    middleware = TenantMiddleware(cast(Any, SessionMiddleware(read_tenant)))
    with suppress(SuspiciousOperation, KonstructError):
        middleware(_SessionRequest(scope, BytesIO()))
    return tenants[0] if tenants else None


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()
