"""The Slack channel's door: requests of Slack's, checked, understood, and answered at once.

Whatever an event asks for is done by workers. What is accepted here stands in Postgres before Slack
is told so; if that cannot be, Slack is told to come again.
"""

import json
import logging
import math
from collections.abc import Callable
from typing import Any

from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
    QueryDict,
)
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from konstruct.channels.exceptions import InstallationInvalid
from konstruct.channels.slack.inbound import buttons
from konstruct.channels.slack.inbound.buttons import read_press
from konstruct.channels.slack.inbound.events import open_envelope
from konstruct.channels.slack.inbound.receiver import Fate, receive
from konstruct.channels.slack.inbound.signatures import NotSlacks, slacks_body
from konstruct.channels.slack.workspaces.oauth import way_back

logger = logging.getLogger(__name__)

Answer = Callable[[HttpRequest, bytes], HttpResponse]


def _of_slack(answer: Answer) -> Callable[[HttpRequest], HttpResponse]:
    """Let a view have the bodies of requests that are Slack's, and refuse all others unread."""

    def view(request: HttpRequest) -> HttpResponse:
        try:
            body = slacks_body(request)
        except NotSlacks as refusal:
            logger.warning("A request to %s was refused: %s", request.path, refusal)
            return _plain(str(refusal), refusal.status)
        return answer(request, body)

    return csrf_exempt(require_POST(view))


@_of_slack
def events(request: HttpRequest, body: bytes) -> HttpResponse:
    """Take an event; 200 also for what is of no interest, so that it does not come again."""
    payload = _document(body)
    if payload is None:
        return _plain("The body is not a JSON object.", 400)
    if payload.get("type") == "url_verification":
        return JsonResponse({"challenge": str(payload.get("challenge", ""))})
    envelope = open_envelope(payload) if payload.get("type") == "event_callback" else None
    if envelope is None:
        return _plain("Nothing to be done.", 200)
    outcome = receive(envelope)
    if outcome.fate is Fate.LIMITED:
        return _plain("Too many messages at once.", 429, retry_after=outcome.retry_after)
    return _plain(f"{outcome.fate.capitalize()}.", 200)


@_of_slack
def interactions(request: HttpRequest, body: bytes) -> HttpResponse:
    """Take a button that was pressed. Slack wants no words."""
    form = QueryDict(body, encoding="utf-8")
    payload = _document(form.get("payload") or "")
    if payload is None:
        return _plain("The body is not a form with a payload in JSON.", 400)
    press = read_press(payload)
    if press is not None:
        buttons.receive(press)
    return HttpResponse(status=200)


@require_safe
def oauth(request: HttpRequest) -> HttpResponse:
    """Send the browser that comes back from Slack on to the admin of the tenant that began."""
    try:
        return HttpResponseRedirect(way_back(request), headers={"Referrer-Policy": "no-referrer"})
    except InstallationInvalid as error:
        return _plain(str(error), 400)


def _document(text: bytes | str) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _plain(words: str, status: int, *, retry_after: float = 0) -> HttpResponse:
    headers = {"Retry-After": str(math.ceil(retry_after))} if retry_after else {}
    return HttpResponse(
        f"{words}\n", status=status, content_type="text/plain; charset=utf-8", headers=headers
    )
