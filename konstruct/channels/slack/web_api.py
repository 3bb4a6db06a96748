"""Asking Slack's Web API, and what its errors mean for us."""

from http.client import HTTPException
from typing import Any, Final

from django.conf import settings
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError

from konstruct.channels.exceptions import ChannelBusy, ChannelRefused, ChannelUnavailable, PostGone

SECONDS: Final = 10
# A pause that Slack asks for without saying how long.
USUAL_PAUSE: Final = 30.0
# Not done now, and maybe later.
PASSING: Final = frozenset(
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
# What a human can do about the usual refusals.
REMEDIES: Final = {
    "account_inactive": "The workspace removed our bot: connect it again.",
    "channel_not_found": "The conversation is gone, or our bot is not in it.",
    "invalid_auth": "The token is not valid any more: connect the workspace again.",
    "is_archived": "The conversation is archived.",
    "missing_scope": "The token lacks a scope (docs/slack.md): connect the workspace again.",
    "not_authed": "The token is missing: connect the workspace again.",
    "not_in_channel": "Our bot is not in the conversation: invite it.",
    "restricted_action": "The workspace lets our bot not post there.",
    "token_expired": "Token rotation is on for the Slack app: switch it off, and connect again.",
    "token_revoked": "The token was revoked: connect the workspace again.",
}


def ask(method: str, *, token: str | None = None, **arguments: Any) -> dict[str, Any]:
    """Call a method of the Web API (`chat_postMessage`), once, and return its answer.

    Raises:
        ChannelBusy: not done, we ask too often.
        ChannelUnavailable: nobody knows.
        PostGone, ChannelRefused: not done.
    """
    # Trying again is the outbox's, which survives us.
    client = WebClient(token, base_url=settings.SLACK_API_URL, timeout=SECONDS, retry_handlers=[])
    try:
        answer = getattr(client, method)(**arguments)
    except SlackApiError as error:
        raise _meaning(method.replace("_", "."), error.response) from None
    except (SlackClientError, HTTPException, OSError, ValueError) as error:
        unreachable = ChannelUnavailable(f"Slack could not be reached ({type(error).__name__}).")
        unreachable.detail = str(error)
        raise unreachable from error
    return dict(answer.data)


def _meaning(method: str, response: Any) -> Exception:
    """Return the error that an answer which is not ok stands for."""
    status = response.status_code
    said = response.data.get("error", "") if isinstance(response.data, dict) else ""
    if status == 429 or said in BUSY:
        return ChannelBusy(
            f"Slack asks us to wait before {method}.",
            retry_after=_seconds(response.headers.get("Retry-After")),
        )
    if status >= 500 or said in PASSING:
        return ChannelUnavailable(f"Slack answered {method} with {status} {said[:200]}.")
    if said in GONE:
        return PostGone(f"Slack answered {method}: {said}.")
    if not said.replace("_", "").isalnum():  # the SDK's words for what is no JSON
        return ChannelUnavailable(f"Slack answered {method} with {status}, and what is no JSON.")
    remedy = REMEDIES.get(said, "")
    return ChannelRefused(f"Slack refused {method}: {said}. {remedy}".rstrip())


def _seconds(text: str | None) -> float:
    try:
        seconds = float(text or USUAL_PAUSE)
    except ValueError:
        return USUAL_PAUSE
    return min(max(seconds, 1.0), 3600.0) if seconds == seconds else USUAL_PAUSE
