"""Token buckets, on the real cache."""

import time
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest
from django.test import override_settings
from django_redis import get_redis_connection

from tenants.limits.rate_limit import Bucket, RateLimit, take_from
from tenants.redis_keys import rate_limit_key

# So slow that no token is refilled during a test.
SLOW = 0.001


def take(tenant: UUID, channel: str, *, burst: int, per_second: float) -> RateLimit:
    return take_from(tenant, [Bucket(channel, burst, per_second)])


def test_a_full_bucket_gives_its_burst_and_then_no_more() -> None:
    tenant = uuid4()
    assert [take(tenant, "rest", burst=3, per_second=SLOW).remaining for _ in range(3)] == [2, 1, 0]
    refused = take(tenant, "rest", burst=3, per_second=SLOW)
    assert (refused.allowed, refused.limit, refused.remaining) == (False, 3, 0)
    assert 900 < refused.retry_after <= 1000
    assert refused.reset_after == 3000


def test_an_allowed_request_need_not_wait() -> None:
    assert take(uuid4(), "rest", burst=2, per_second=SLOW) == RateLimit(
        allowed=True, limit=2, remaining=1, retry_after=0.0, reset_after=1000.0
    )


def test_tenants_and_channels_have_buckets_of_their_own() -> None:
    tenant, other = uuid4(), uuid4()
    for channel in ("rest", "slack"):
        assert take(tenant, channel, burst=1, per_second=SLOW).allowed
    assert take(other, "rest", burst=1, per_second=SLOW).allowed
    assert not take(tenant, "rest", burst=1, per_second=SLOW).allowed


def test_tokens_are_refilled_over_time() -> None:
    tenant = uuid4()
    assert take(tenant, "rest", burst=1, per_second=50).allowed
    refused = take(tenant, "rest", burst=1, per_second=50)
    while not refused.allowed:
        assert 0 < refused.retry_after <= 0.02
        time.sleep(refused.retry_after)
        refused = take(tenant, "rest", burst=1, per_second=50)
    assert refused.remaining == 0


def test_requests_at_the_same_time_take_each_token_once() -> None:
    tenant = uuid4()
    with ThreadPoolExecutor(8) as threads:
        answers = list(
            threads.map(lambda _: take(tenant, "rest", burst=20, per_second=SLOW), range(60))
        )
    assert sum(answer.allowed for answer in answers) == 20


def test_an_idle_bucket_expires() -> None:
    tenant = uuid4()
    take(tenant, "rest", burst=10, per_second=5)
    left = get_redis_connection("default").pttl(rate_limit_key(tenant, "rest"))
    assert 0 < left <= 3000


def test_without_a_cache_everything_is_allowed_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    tenant = uuid4()
    nowhere = {
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": "redis://127.0.0.1:1/0",
            "OPTIONS": {"SOCKET_CONNECT_TIMEOUT": 1},
        }
    }
    with override_settings(CACHES=nowhere):
        answer = take(tenant, "rest", burst=1, per_second=1)
    assert answer == RateLimit(True, limit=1, remaining=1, retry_after=0.0, reset_after=0.0)
    (line,) = caplog.messages
    assert line.startswith(f"rate limit of {tenant}:ratelimit:rest not checked")


def test_tokens_are_taken_from_all_buckets_or_none() -> None:
    tenant = uuid4()
    both = [Bucket("rest", 5, SLOW), Bucket("rest-key", 2, SLOW)]
    assert [take_from(tenant, both).remaining for _ in range(2)] == [1, 0]
    refused = [take_from(tenant, both) for _ in range(9)]
    assert {(answer.allowed, answer.limit, answer.remaining) for answer in refused} == {
        (False, 2, 0)
    }
    assert 900 < refused[0].retry_after <= 1000
    # A refusal does not change the other bucket.
    assert take(tenant, "rest", burst=5, per_second=SLOW).remaining == 2
