"""Slack's protocol: signatures of its requests, and calls of its Web API with their errors."""

from http.client import HTTPException
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.signature import SignatureVerifier

from konstruct.channels.delivery import (
    ChannelBusy,
    ChannelError,
    ChannelRefused,
    ChannelUnavailable,
    PostGone,
)
from konstruct.llm.completions import retry_after_seconds
from tenants import context, exceptions

TIMEOUT_SECONDS: Final = 10
# The pause after a rate limit without Retry-After.
DEFAULT_RETRY_AFTER_SECONDS: Final = 30.0
MAX_RETRY_AFTER_SECONDS: Final = 3600.0
# Slack's largest events are a few hundred kilobytes: 40,000 characters, as text and as blocks. The
# web process refuses longer bodies (konstruct.web.application).
MAX_BODY_BYTES: Final = 1_000_000
# Temporary errors.
TEMPORARY: Final = frozenset(
    {
        "fatal_error",
        "internal_error",
        "message_limit_exceeded",
        "request_timeout",
        "service_unavailable",
        "team_added_to_org",
    }
)
BUSY: Final = frozenset({"ratelimited", "rate_limited"})
GONE: Final = frozenset({"message_not_found", "cant_update_message"})
# Remedies for common errors.
REMEDIES: Final = {
    "account_inactive": "The workspace removed our bot: connect it again.",
    "channel_not_found": "The conversation does not exist any more, or the bot is not in it.",
    "invalid_auth": "The token is not valid any more: connect the workspace again.",
    "is_archived": "The conversation is archived.",
    "missing_scope": "The token lacks a scope (docs/slack.md): connect the workspace again.",
    "not_authed": "The token is missing: connect the workspace again.",
    "not_in_channel": "Our bot is not in the conversation: invite it.",
    "restricted_action": "The workspace does not allow the bot to post there.",
    "token_expired": "Token rotation is on for the Slack app: switch it off, and connect again.",
    "token_revoked": "The token was revoked: connect the workspace again.",
}


def call_slack(
    method: str,
    *,
    token: str | None = None,
    timeout_seconds: int = TIMEOUT_SECONDS,
    **arguments: Any,
) -> dict[str, Any]:
    """Call a method of the Web API (`chat_postMessage`) once, and return its response.

    Do not call it in a transaction: the thread returns its pooled database connections meanwhile.

    Raises:
        ChannelBusy: Slack's rate limit; the call was not executed.
        ChannelUnavailable: a temporary error; the call may have been executed.
        PostGone, ChannelRefused: the call was not executed.
    """
    # The outbox retries.
    client = WebClient(
        token, base_url=settings.SLACK_API_URL, timeout=timeout_seconds, retry_handlers=[]
    )
    try:
        with context.release_connections():
            answer = getattr(client, method)(**arguments)
    except SlackApiError as error:
        raise _error_of(method.replace("_", "."), error.response) from None
    except (SlackClientError, HTTPException, OSError, ValueError) as error:
        unreachable = ChannelUnavailable(f"Slack could not be reached ({type(error).__name__}).")
        unreachable.detail = str(error)
        raise unreachable from error
    return dict(answer.data)


def _error_of(method: str, response: Any) -> ChannelError:
    status = response.status_code
    code = response.data.get("error", "") if isinstance(response.data, dict) else ""
    if status == 429 or code in BUSY:
        seconds = retry_after_seconds(response.headers.get("Retry-After"))
        if seconds is None:
            seconds = DEFAULT_RETRY_AFTER_SECONDS
        return ChannelBusy(
            f"Slack asks us to wait before {method}.",
            retry_after=min(max(seconds, 1.0), MAX_RETRY_AFTER_SECONDS),
        )
    if status >= 500 or code in TEMPORARY:
        return ChannelUnavailable(f"Slack answered {method} with {status} {code[:200]}.")
    if code in GONE:
        return PostGone(f"Slack answered {method}: {code}.")
    if not code.replace("_", "").isalnum():  # the SDK's message for a body that is not JSON
        return ChannelUnavailable(f"Slack answered {method} with {status}, and what is no JSON.")
    return ChannelRefused(f"Slack refused {method}: {code}. {REMEDIES.get(code, '')}".rstrip())


class SignatureInvalid(exceptions.KonstructError):
    """A request has no valid signature of Slack; `status` is the HTTP status of the response."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def verified_body(request: HttpRequest) -> bytes:
    """Return the body of a request that Slack has signed within the last five minutes.

    Raises SignatureInvalid.
    """
    if not settings.SLACK_SIGNING_SECRET:
        raise SignatureInvalid(
            "Slack is not configured here: SLACK_SIGNING_SECRET is not set.", 404
        )
    timestamp = request.headers.get("X-Slack-Request-Timestamp")
    signature = request.headers.get("X-Slack-Signature")
    try:
        is_signed = any(
            SignatureVerifier(secret).is_valid(request.body, timestamp, signature)
            for secret in (settings.SLACK_SIGNING_SECRET, *settings.SLACK_SIGNING_SECRET_FALLBACKS)
        )
    except (ValueError, TypeError):  # not a number, not UTF-8, or not ASCII
        is_signed = False
    if not is_signed:
        raise SignatureInvalid("The signature is not Slack's, or older than five minutes.", 401)
    return request.body
