"""Whether a request is Slack's: looked at before anything in it is read."""

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from slack_sdk.signature import SignatureVerifier

from tenants.exceptions import KonstructError

# Slack's largest are a few hundred kilobytes: 40,000 characters, once as text and once as blocks.
MOST_BYTES = 1_000_000


class NotSlacks(KonstructError):
    """The request is refused unread; `status` is what it is answered with."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def slacks_body(request: HttpRequest) -> bytes:
    """Return the body of a request that Slack has signed within the last five minutes.

    Raises NotSlacks.
    """
    if not settings.SLACK_SIGNING_SECRET:
        raise NotSlacks("Slack is not configured here: SLACK_SIGNING_SECRET is not set.", 404)
    try:
        too_large = int(request.META.get("CONTENT_LENGTH") or 0) > MOST_BYTES
        body = b"" if too_large else request.body
    except RequestDataTooBig:
        too_large = True
    if too_large:
        raise NotSlacks(f"The body is larger than {MOST_BYTES} bytes.", 413)
    if not _is_signed(request, body):
        raise NotSlacks("The signature is not Slack's, or older than five minutes.", 401)
    return body


def _is_signed(request: HttpRequest, body: bytes) -> bool:
    timestamp = request.headers.get("X-Slack-Request-Timestamp")
    signature = request.headers.get("X-Slack-Signature")
    try:
        return any(
            SignatureVerifier(secret).is_valid(body, timestamp, signature)
            for secret in (settings.SLACK_SIGNING_SECRET, *settings.SLACK_SIGNING_SECRET_FALLBACKS)
        )
    except (ValueError, TypeError):  # no number, no UTF-8, or what is not ASCII
        return False
