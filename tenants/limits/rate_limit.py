"""Token buckets of tenants and channels, in one atomic round trip to the cache."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django_redis import get_redis_connection
from django_redis.exceptions import ConnectionInterrupted
from redis.exceptions import RedisError

from tenants.redis_keys import rate_limit_key

logger = logging.getLogger(__name__)

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
    keys = [rate_limit_key(tenant_id, bucket.channel) for bucket in buckets]
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
    keys = [rate_limit_key(tenant_id, bucket.channel) for bucket in buckets]
    try:
        get_redis_connection("default").register_script(_PUT_BACK)(keys=keys)
    except (RedisError, ConnectionInterrupted) as error:
        logger.warning("nothing put back to %s, the cache is down: %s", keys[0], error)
