"""Token bucket for each tenant and channel, taken from in one atomic round trip."""

import logging
from dataclasses import dataclass
from uuid import UUID

from django_redis import get_redis_connection
from django_redis.exceptions import ConnectionInterrupted
from redis.exceptions import RedisError

from tenants.redis_keys import rate_limit_key

logger = logging.getLogger(__name__)

# KEYS[1] bucket; ARGV: capacity, tokens per second, tokens to take.
# Returns: taken (0 or 1), whole tokens left, microseconds until the tokens would be there.
# The clock is the server's own, one for all processes. An idle bucket expires once it is full.
_TAKE = """
local capacity, rate, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(bucket[1]) or capacity
local elapsed = math.max(0, now - (tonumber(bucket[2]) or now))
tokens = math.min(capacity, tokens + elapsed * rate / 1000000)
local taken = 0
local wait = 0
if tokens >= cost then
    tokens = tokens - cost
    taken = 1
else
    wait = math.ceil((cost - tokens) / rate * 1000000)
end
redis.call('HSET', KEYS[1], 'tokens', string.format('%.6f', tokens),
    'at', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(capacity / rate * 1000) + 1000)
return {taken, math.floor(tokens), wait}
"""


@dataclass(frozen=True)
class RateLimit:
    """The answer to one request for tokens."""

    allowed: bool
    limit: int  # tokens of a full bucket
    remaining: int  # whole tokens left
    retry_after: float  # seconds until the request would be allowed; 0 if it was
    reset_after: float  # seconds until the bucket is full again


def take(
    tenant_id: UUID | str, channel: str, *, burst: int, per_second: float, cost: int = 1
) -> RateLimit:
    """Take tokens from a tenant's bucket for a channel, if it has them.

    Without a cache everything is allowed, with a line in the log: a lost cache must not take the
    service down with it.

    Args:
        tenant_id: whose bucket.
        channel: rest, slack …
        burst: size of the bucket.
        per_second: tokens that come back in a second.
        cost: tokens to take.
    """
    if burst < 1 or per_second <= 0 or not 1 <= cost <= burst:
        raise ValueError(f"a bucket of {burst}, {per_second} per second, cannot give {cost}")
    key = rate_limit_key(tenant_id, channel)
    try:
        client = get_redis_connection("default")
        taken, left, wait = client.register_script(_TAKE)(
            keys=[key], args=[burst, per_second, cost]
        )
    except (RedisError, ConnectionInterrupted) as error:
        logger.warning("rate limit of %s not checked, the cache is down: %s", key, error)
        return RateLimit(True, limit=burst, remaining=burst, retry_after=0.0, reset_after=0.0)
    return RateLimit(
        allowed=bool(taken),
        limit=burst,
        remaining=left,
        retry_after=wait / 1_000_000,
        reset_after=(burst - left) / per_second,
    )
