"""Token buckets in the cache: of tenants and channels, of logins, and of invalid API keys.

Tokens are taken in one atomic round trip. An attempt to log in is counted before the password is
checked: a hundred attempts at once count like a hundred in sequence, and a refused attempt computes
no hash. An attempt that succeeds is not counted.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from django.contrib.auth.forms import UsernameField
from django_redis import get_redis_connection
from django_redis.exceptions import ConnectionInterrupted
from redis.exceptions import RedisError

from tenants import context, http, redis_keys

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

# KEYS: buckets; ARGV: capacity and tokens per second of each.
# Returns: taken (0 or 1), then of each bucket the whole tokens left, and the microseconds until a
# token is there. A token is taken of all buckets or of none, so a refusal uses none up.
# The clock is the cache's, for all processes. An idle bucket expires when it is full.
_TAKE = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local tokens, taken = {}, 1
for i, key in ipairs(KEYS) do
    local capacity, rate = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
    local bucket = redis.call('HMGET', key, 'tokens', 'at')
    local elapsed = math.max(0, now - (tonumber(bucket[2]) or now))
    tokens[i] = math.min(capacity, (tonumber(bucket[1]) or capacity) + elapsed * rate / 1000000)
    if tokens[i] < 1 then taken = 0 end
end
local answer = {taken}
for i, key in ipairs(KEYS) do
    local capacity, rate = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
    local wait = math.max(0, math.ceil((1 - tokens[i]) / rate * 1000000))
    tokens[i] = tokens[i] - taken
    redis.call('HSET', key, 'tokens', string.format('%.6f', tokens[i]),
        'at', string.format('%.0f', now))
    redis.call('PEXPIRE', key, math.ceil(capacity / rate * 1000) + 1000)
    answer[2 * i] = math.floor(tokens[i])
    answer[2 * i + 1] = wait
end
return answer
"""

# Adds a token to each existing bucket. The next call of _TAKE cuts off tokens above its size.
_PUT_BACK = """
for _, key in ipairs(KEYS) do
    if redis.call('EXISTS', key) == 1 then redis.call('HINCRBYFLOAT', key, 'tokens', 1) end
end
"""


@dataclass(frozen=True)
class Bucket:
    """A bucket of a tenant: its channel (rest, slack …), its size, and tokens a second."""

    channel: str
    burst: int
    per_second: float


@dataclass(frozen=True)
class RateLimit:
    """The state of a bucket after one attempt to take a token."""

    allowed: bool
    limit: int  # tokens of a full bucket
    remaining: int  # whole tokens left
    retry_after: float  # seconds until the request would be allowed; 0 if it was
    reset_after: float  # seconds until the bucket is full again


def take_from(tenant_id: UUID | str, buckets: Sequence[Bucket]) -> RateLimit:
    """Take a token from each of these buckets of a tenant, or from none.

    While the cache is down, everything is allowed and logged: the service must not depend on it.

    Returns:
        The bucket with the fewest tokens left; after a refusal, the one with the longest wait.
    """
    keys = [redis_keys.rate_limit_key(tenant_id, bucket.channel) for bucket in buckets]
    sizes = [number for bucket in buckets for number in (bucket.burst, bucket.per_second)]
    try:
        client = get_redis_connection("default")
        taken, *left = client.register_script(_TAKE)(keys=keys, args=sizes)
    except (RedisError, ConnectionInterrupted) as error:
        logger.warning("rate limit of %s not checked, the cache is down: %s", keys[0], error)
        left = [number for bucket in buckets for number in (bucket.burst, 0)]
        taken = 1
    answers = [
        RateLimit(
            allowed=bool(taken),
            limit=bucket.burst,
            remaining=remaining,
            retry_after=wait / 1_000_000,
            reset_after=(bucket.burst - remaining) / bucket.per_second,
        )
        for bucket, remaining, wait in zip(buckets, left[::2], left[1::2], strict=True)
    ]
    return min(answers, key=lambda answer: (-answer.retry_after, answer.remaining))


def put_back(tenant_id: UUID | str, buckets: Sequence[Bucket]) -> None:
    """Give back the tokens that `take_from` has taken for a request that does not count."""
    keys = [redis_keys.rate_limit_key(tenant_id, bucket.channel) for bucket in buckets]
    try:
        get_redis_connection("default").register_script(_PUT_BACK)(keys=keys)
    except (RedisError, ConnectionInterrupted) as error:
        logger.warning("nothing put back to %s, the cache is down: %s", keys[0], error)


class LoginAttempt:
    """An attempt to log in to the current tenant's site, or to the operators' site."""

    def __init__(self, username: str, address: str | None) -> None:
        # The username that the login form makes of the typed text (NFKC).
        name = str(UsernameField().to_python(username))
        who = sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
        where = redis_keys.escape_part(http.throttled_address(address))
        self.tenant: UUID | str = context.current_tenant_id() or OPERATORS
        self.pair = f"login-{who}-{where}"
        self.seen = redis_keys.login_seen_key(self.tenant, who, where)
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
        is_known = False
        # `take_from` logs an outage, and allows the attempt.
        with suppress(RedisError, ConnectionInterrupted):
            is_known = bool(get_redis_connection("default").exists(self.seen))
        if not is_known:
            self.buckets.append(self._as_anybody)
        return take_from(self.tenant, self.buckets)

    def record_success(self) -> None:
        """Give the tokens back: successful logins are not limited."""
        put_back(self.tenant, self.buckets)
        try:
            get_redis_connection("default").set(self.seen, 1, ex=KNOWN_ADDRESS_SECONDS)
        except (RedisError, ConnectionInterrupted) as error:
            logger.warning("%s not noted, the cache is down: %s", self.seen, error)

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
    tenant_id = context.current_tenant_id()
    if tenant_id is None:
        return None, False
    where = redis_keys.escape_part(http.throttled_address(address))
    bucket = Bucket(f"stranger-{where}", ANONYMOUS_BURST, ANONYMOUS_PER_SECOND)
    limit = take_from(tenant_id, [bucket])
    return limit, limit.allowed and _should_record_anonymous(tenant_id)


def count_mail_request(email: str, address: str | None) -> RateLimit:
    """Count a request for a password mail, by its mail address and by the client's address."""
    who = sha256(email.casefold().encode(errors="surrogatepass")).hexdigest()[:32]
    where = redis_keys.escape_part(http.throttled_address(address))
    return take_from(
        context.current_tenant_id() or OPERATORS,
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
