"""How often somebody may try: passwords of the admin, and keys that open nothing.

An attempt is counted before the password is looked at, in one atomic step: a hundred at once are no
more than one after the other, and a refused one costs no hash. One that succeeds is given back.
"""

import logging
from hashlib import sha256
from uuid import UUID

from django.conf import settings
from django.contrib.auth.forms import UsernameField
from django_redis import get_redis_connection
from django_redis.exceptions import ConnectionInterrupted
from redis.exceptions import RedisError

from tenants.context import current_tenant_id
from tenants.http.client_address import throttled_address
from tenants.limits.rate_limit import Bucket, RateLimit, put_back, take_from
from tenants.redis_keys import escape_part, login_seen_key

logger = logging.getLogger(__name__)

# The operators' site belongs to no tenant. Its keys begin with the name of its schema instead.
OPERATORS = "public"
# What nobody who is known does is recorded so often at most, for each address and in all.
STRANGERS_BURST, STRANGERS_PER_SECOND = 20, 1 / 10
STRANGERS_IN_ALL_BURST, STRANGERS_IN_ALL_PER_SECOND = 200, 1.0
# From where somebody has logged in is remembered for so long.
SEEN_SECONDS = 30 * 24 * 3600
# And what is refused because it comes too often, once in so many seconds.
REFUSALS_EVERY_SECONDS = 60.0


class LoginAttempt:
    """An attempt to log in to the site of the tenant that we are in, or to the operators'."""

    def __init__(self, username: str, address: str | None) -> None:
        # The username that the login form makes of the typed text (NFKC).
        name = str(UsernameField().to_python(username))
        who = sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
        where = escape_part(throttled_address(address))
        self.tenant: UUID | str = current_tenant_id() or OPERATORS
        self.pair = f"login-{who}-{where}"
        self.seen = login_seen_key(self.tenant, who, where)
        # One name from one address; the two larger limits are for many names from one address, and
        # for one name from many addresses.
        self.buckets = [
            _bucket(self.pair, settings.LOGIN_ATTEMPTS),
            _bucket(f"login-from-{where}", settings.LOGIN_ATTEMPTS_PER_ADDRESS),
        ]
        self._as_anybody = _bucket(f"login-as-{who}", settings.LOGIN_ATTEMPTS_PER_USER)

    def begin(self) -> RateLimit:
        """Count the attempt. If it is not allowed, the password must not be looked at.

        Others who try somebody's name elsewhere lock them out of no address from which they have
        logged in before.
        """
        if not self._was_seen():
            self.buckets.append(self._as_anybody)
        return take_from(self.tenant, self.buckets)

    def succeeded(self) -> None:
        """Do not count it: who knows their password may log in as often as they like."""
        put_back(self.tenant, self.buckets)
        try:
            get_redis_connection("default").set(self.seen, 1, ex=SEEN_SECONDS)
        except (RedisError, ConnectionInterrupted) as error:
            logger.warning("%s not noted, the cache is down: %s", self.seen, error)

    def _was_seen(self) -> bool:
        try:
            return bool(get_redis_connection("default").exists(self.seen))
        except (RedisError, ConnectionInterrupted):
            return False  # `take_from` says so in the log, and allows it

    def is_worth_recording(self, limit: RateLimit) -> bool:
        """Tell whether a failure is to be recorded: each that was looked at, few that were not."""
        if limit.allowed:
            return _stranger_is_worth_recording(self.tenant)
        return is_first_refusal(self.pair, tenant=self.tenant)


def strange_request(address: str | None) -> tuple[RateLimit | None, bool]:
    """Count a request of the API that nobody known has sent, in the tenant that we are in.

    Returns its limit, and whether it is to be recorded. Outside of tenants there is neither.
    """
    tenant_id = current_tenant_id()
    if tenant_id is None:
        return None, False
    where = escape_part(throttled_address(address))
    bucket = Bucket(f"stranger-{where}", STRANGERS_BURST, STRANGERS_PER_SECOND)
    limit = take_from(tenant_id, [bucket])
    return limit, limit.allowed and _stranger_is_worth_recording(tenant_id)


def is_first_refusal(channel: str, *, tenant: UUID | str) -> bool:
    """Tell whether a caller who comes too often was not refused a moment ago."""
    bucket = Bucket(f"refused-{channel}", 1, 1 / REFUSALS_EVERY_SECONDS)
    return take_from(tenant, [bucket]).allowed


def _stranger_is_worth_recording(tenant: UUID | str) -> bool:
    bucket = Bucket("strangers", STRANGERS_IN_ALL_BURST, STRANGERS_IN_ALL_PER_SECOND)
    return take_from(tenant, [bucket]).allowed


def _bucket(channel: str, attempts: int) -> Bucket:
    return Bucket(channel, attempts, attempts / settings.LOGIN_LOCK_SECONDS)
