"""Rate limits of the API: token buckets of tenants and keys, and the headers that report them."""

import math
from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from konstruct.api.auth.keys import Program
from tenants.context import current_tenant_id
from tenants.limits.quotas import request_buckets
from tenants.limits.rate_limit import take_from
from tenants.serving import tenant_of_request

# Reads have a separate bucket, so that polling for replies leaves tokens for messages.
SENDING = "rest"
READING = "api"


class TenantThrottle(BaseThrottle):
    """Takes a token for each request from the bucket of the tenant and from that of the API key.

    The bucket of a key is smaller, so that a program leaves requests to the other programs of its
    tenant.
    """

    def __init__(self) -> None:
        self.retry_after = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Take a token, and store the bucket's answer for the response's headers."""
        tenant_id = current_tenant_id()
        if tenant_id is None:  # an unauthenticated request does nothing
            return True
        channel = READING if request.method in ("GET", "HEAD", "OPTIONS") else SENDING
        key = request.user.key.prefix if isinstance(request.user, Program) else None
        served = tenant_of_request()
        buckets = request_buckets(served.quotas if served else {}, channel, key)
        bucket = take_from(tenant_id, buckets)
        self.retry_after = bucket.retry_after
        request._request.rate_limit = bucket  # type: ignore[attr-defined]  # for the headers below
        return bucket.allowed

    def wait(self) -> float:
        """Return the seconds until the next token."""
        return self.retry_after


class RateLimited(APIView):
    """A view with requests that cost tokens, and responses with the number of remaining tokens."""

    throttle_classes = [TenantThrottle]

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Add the RateLimit headers to every response, including errors."""
        final = super().finalize_response(request, response, *args, **kwargs)
        bucket = getattr(getattr(request, "_request", request), "rate_limit", None)
        if bucket is not None:
            final["RateLimit-Limit"] = str(bucket.limit)
            final["RateLimit-Remaining"] = str(bucket.remaining)
            final["RateLimit-Reset"] = str(math.ceil(bucket.reset_after))
        return final
