"""The verified caller of a request, with a counted share of the threads.

A query verifies a key or a session. It runs in one of the threads for unverified requests. The
result is remembered, so that a known caller does not wait for these threads. The result grants no
access: the request itself checks the key or the session again.
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
InThread = Callable[[Share, Callable[[], str | None]], Awaitable[str | None]]

# A caller is verified again after this time, in a thread of the caller's own share.
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


class Recent(OrderedDict[str, V]):
    """A table of bounded size, which drops the entry that was set longest ago."""

    def __setitem__(self, key: str, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > MAX_REMEMBERED_CALLERS:
            self.popitem(last=False)


class Limits:
    """The token buckets of this process for the unverified requests of each address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: Recent[tuple[float, float]] = Recent()

    def take(self, name: str) -> None:
        """Take a token. Raises TooManyUnverified where there is none."""
        burst = settings.UNVERIFIED_RATE_LIMIT_BURST
        per_second = settings.UNVERIFIED_RATE_LIMIT_PER_SECOND
        now = self._clock()
        tokens, at = self._left.get(name, (burst, now))
        tokens = min(burst, tokens + (now - at) * per_second)
        is_allowed = tokens >= 1
        self._left[name] = (tokens - is_allowed, now)
        if not is_allowed:
            raise TooManyUnverified((1 - tokens) / per_second)


@dataclass(frozen=True)
class Proof:
    """A key or a session in a request, which can verify the caller."""

    kind: str
    digest: str
    verify: Callable[[], str | None]
    """In a thread: return the name of the caller's share, None if the proof is not valid."""


class Callers:
    """Finds the share of each request. Use it in one event loop."""

    def __init__(self, in_thread: InThread, clock: Callable[[], float] = time.monotonic) -> None:
        self._in_thread = in_thread
        self._clock = clock
        self._limits = Limits(clock)
        self._verified: Recent[tuple[str, float]] = Recent()
        self._verifying: dict[str, asyncio.Task[str | None]] = {}

    async def share_of(self, request: ASGIRequest) -> Share:
        """Return the share of the verified caller, or else of the address.

        Raises:
            TooManyUnverified: the address has sent too many unverified requests.
            Overloaded: too many unverified requests wait for a thread.
        """
        if is_from_slack(request):
            return SLACK
        proof = proof_of(request)
        of_address = f"{throttled_address(address_of(request))} {proof.kind if proof else 'none'}"
        unverified = Share(of_address, is_verified=False)
        if proof is None:
            self._limits.take(of_address)
            return unverified
        name, since = self._verified.get(proof.digest, (None, 0.0))
        if name is not None and self._clock() - since < FRESH_SECONDS:
            return Share(name, is_verified=True)
        is_first = proof.digest not in self._verifying
        if is_first:
            if name is None:
                self._limits.take(of_address)
            share = unverified if name is None else Share(name, is_verified=True)
            self._begin(proof, share, name)
        verified = await asyncio.shield(self._verifying[proof.digest])
        if verified is not None:
            return Share(verified, is_verified=True)
        if not is_first:  # the first of several with one proof has taken a token
            self._limits.take(of_address)
        return unverified

    async def is_still_valid(self, request: ASGIRequest, share: Share) -> bool:
        """Return whether the key or session of an open stream is valid, at most a moment ago.

        The result is remembered for RECHECK_SECONDS, for all streams with the same proof. An
        unavailable database ends no stream.
        """
        proof = proof_of(request)
        if proof is None:
            return True
        name, since = self._verified.get(proof.digest, (None, 0.0))
        if name is not None and self._clock() - since < RECHECK_SECONDS:
            return True
        if proof.digest not in self._verifying:
            self._begin(proof, share, share.name)
        try:
            return await asyncio.shield(self._verifying[proof.digest]) is not None
        except Overloaded:
            return True

    def _begin(self, proof: Proof, share: Share, known: str | None) -> None:
        """Verify a proof once for all requests that have it at the same time."""
        task = asyncio.create_task(self._verify(proof, share, known))
        self._verifying[proof.digest] = task
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _verify(self, proof: Proof, share: Share, known: str | None) -> str | None:
        try:
            name = await self._in_thread(share, proof.verify)
        except Error:  # the request itself fails; a known caller stays known
            return known
        finally:
            del self._verifying[proof.digest]
        if name is None:
            self._verified.pop(proof.digest, None)
        else:
            self._verified[proof.digest] = (name, self._clock())
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


def proof_of(request: ASGIRequest) -> Proof | None:
    """Return the key or the session that the request names, None if it names neither."""
    key = parse_key(bearer_key(request.headers.get("Authorization", "")) or "")
    if key is not None:
        return Proof(
            "key", _digest("key", str(key)), lambda: key.tenant_id.hex if is_valid(key) else None
        )
    session = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    if not session:
        return None
    scope = request.scope
    host = host_name(request.META.get("HTTP_HOST", ""))
    return Proof("session", _digest("session", host, session), lambda: tenant_of_session(scope))


class _SessionRequest(ASGIRequest):
    """A request for its session only: the access log has an outage with the real request."""

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
    """In a thread: return the tenant of the admin that a session is logged in to, None if to none.

    Django's own code reads host, session and user, of a request without a body.
    """
    found: list[str] = []

    def note(request: HttpRequest) -> HttpResponse:
        tenant = request.tenant  # type: ignore[attr-defined]
        request.session = cast(Any, _SessionData(request.session.items()))
        user = cast(Any, get_user(request))
        if user.is_active and user.is_staff:
            found.append(tenant.id.hex if tenant else OPERATORS)
        return HttpResponse()

    read = TenantMiddleware(cast(Any, SessionMiddleware(note)))
    with suppress(SuspiciousOperation, KonstructError):
        read(_SessionRequest(scope, BytesIO()))
    return found[0] if found else None


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()
