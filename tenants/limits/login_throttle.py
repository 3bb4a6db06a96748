"""Limits of login attempts, and of requests with invalid API keys.

An attempt is counted before the password is checked, in one atomic step. A hundred attempts at once
therefore count like a hundred in sequence, and a refused attempt computes no hash. An attempt that
succeeds is not counted.
"""

import logging
from hashlib import sha256
from uuid import UUID

from django.contrib.auth.forms import UsernameField
from django_redis import get_redis_connection
from django_redis.exceptions import ConnectionInterrupted
from redis.exceptions import RedisError

from tenants.context import current_tenant_id
from tenants.http.client_address import throttled_address
from tenants.limits.rate_limit import Bucket, RateLimit, put_back, take_from
from tenants.redis_keys import escape_part, login_seen_key

logger = logging.getLogger(__name__)

# The operators' site belongs to no tenant. Its cache keys begin with the name of its schema.
OPERATORS = "public"
# Failed attempts to log in: of one name from one address, of all names from one address, of one
# name from all addresses; and the seconds after which as many are allowed again.
ATTEMPTS = 5
ATTEMPTS_PER_ADDRESS = 50
ATTEMPTS_PER_USER = 100
LOCK_SECONDS = 900
# Limits for recording unauthenticated requests: for each address, and for all of them.
ANONYMOUS_BURST, ANONYMOUS_PER_SECOND = 20, 1 / 10
ANONYMOUS_TOTAL_BURST, ANONYMOUS_TOTAL_PER_SECOND = 200, 1.0
# How long the address of a successful login is remembered.
KNOWN_ADDRESS_SECONDS = 30 * 24 * 3600
# Of repeated refusals, one is recorded in this time.
REFUSALS_EVERY_SECONDS = 60.0


class LoginAttempt:
    """An attempt to log in to the current tenant's site, or to the operators' site."""

    def __init__(self, username: str, address: str | None) -> None:
        # The username that the login form makes of the typed text (NFKC).
        name = str(UsernameField().to_python(username))
        who = sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
        where = escape_part(throttled_address(address))
        self.tenant: UUID | str = current_tenant_id() or OPERATORS
        self.pair = f"login-{who}-{where}"
        self.seen = login_seen_key(self.tenant, who, where)
        # One name from one address. Two larger limits count many names from one address, and one
        # name from many addresses.
        self.buckets = [
            _bucket(self.pair, ATTEMPTS),
            _bucket(f"login-from-{where}", ATTEMPTS_PER_ADDRESS),
        ]
        self._as_anybody = _bucket(f"login-as-{who}", ATTEMPTS_PER_USER)

    def begin(self) -> RateLimit:
        """Count the attempt. If it is not allowed, do not check the password.

        Attempts with the name from other addresses do not block an address from which the user has
        logged in before.
        """
        if not self._is_known_address():
            self.buckets.append(self._as_anybody)
        return take_from(self.tenant, self.buckets)

    def record_success(self) -> None:
        """Give the tokens back: successful logins are not limited."""
        put_back(self.tenant, self.buckets)
        try:
            get_redis_connection("default").set(self.seen, 1, ex=KNOWN_ADDRESS_SECONDS)
        except (RedisError, ConnectionInterrupted) as error:
            logger.warning("%s not noted, the cache is down: %s", self.seen, error)

    def _is_known_address(self) -> bool:
        try:
            return bool(get_redis_connection("default").exists(self.seen))
        except (RedisError, ConnectionInterrupted):
            return False  # `take_from` logs the outage, and allows the attempt

    def should_record(self, limit: RateLimit) -> bool:
        """Return whether to record a failure: every checked one, and a few of the refused ones."""
        if limit.allowed:
            return _should_record_anonymous(self.tenant)
        return is_first_refusal(self.pair, tenant=self.tenant)


def count_anonymous_request(address: str | None) -> tuple[RateLimit | None, bool]:
    """Count an unauthenticated API request in the current tenant.

    Returns:
        Its limit, and whether to record it. Outside of tenants None and False.
    """
    tenant_id = current_tenant_id()
    if tenant_id is None:
        return None, False
    where = escape_part(throttled_address(address))
    bucket = Bucket(f"stranger-{where}", ANONYMOUS_BURST, ANONYMOUS_PER_SECOND)
    limit = take_from(tenant_id, [bucket])
    return limit, limit.allowed and _should_record_anonymous(tenant_id)


def count_mail_request(email: str, address: str | None) -> RateLimit:
    """Count a request for a password mail, by its mail address and by the client's address."""
    who = sha256(email.casefold().encode(errors="surrogatepass")).hexdigest()[:32]
    where = escape_part(throttled_address(address))
    return take_from(
        current_tenant_id() or OPERATORS,
        [
            _bucket(f"reset-of-{who}", ATTEMPTS),
            _bucket(f"reset-from-{where}", ATTEMPTS_PER_ADDRESS),
        ],
    )


def is_first_refusal(channel: str, *, tenant: UUID | str) -> bool:
    """Return whether this is the first refusal of a caller in REFUSALS_EVERY_SECONDS."""
    bucket = Bucket(f"refused-{channel}", 1, 1 / REFUSALS_EVERY_SECONDS)
    return take_from(tenant, [bucket]).allowed


def _should_record_anonymous(tenant: UUID | str) -> bool:
    bucket = Bucket("strangers", ANONYMOUS_TOTAL_BURST, ANONYMOUS_TOTAL_PER_SECOND)
    return take_from(tenant, [bucket]).allowed


def _bucket(channel: str, attempts: int) -> Bucket:
    return Bucket(channel, attempts, attempts / LOCK_SECONDS)
