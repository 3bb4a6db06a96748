"""The webhooks of the Slack channel: requests are verified, stored and answered.

Workers handle the events. An event is stored in Postgres before Slack gets a 200; if that fails,
Slack gets an error and sends the event again.
"""

import json
import logging
import math
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse, QueryDict
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from konstruct.channels.slack import inbound, web_api
from konstruct.channels.slack.events import parse_envelope
from konstruct.channels.slack.installations import InstallationInvalid, admin_url
from tenants.traces import logged_path

logger = logging.getLogger(__name__)

SignedView = Callable[[HttpRequest, bytes], HttpResponse]


def _verify_signature(signed_view: SignedView) -> Callable[[HttpRequest], HttpResponse]:
    """Decorate a view: it is called with the body of requests that Slack has signed; others get an
    error.
    """

    def view(request: HttpRequest) -> HttpResponse:
        try:
            body = web_api.verified_body(request)
        except web_api.SignatureInvalid as refusal:
            logger.warning("A request to %s was refused: %s", logged_path(request), refusal)
            return _plain(str(refusal), refusal.status)
        return signed_view(request, body)

    return csrf_exempt(require_POST(view))


@_verify_signature
def events(request: HttpRequest, body: bytes) -> HttpResponse:
    """Receive an event. Ignored events get a 200 too, so that Slack does not retry them."""
    payload = _document(body)
    if payload is None:
        return _plain("The body is not a JSON object.", 400)
    if payload.get("type") == "url_verification":
        return JsonResponse({"challenge": str(payload.get("challenge", ""))})
    envelope = parse_envelope(payload) if payload.get("type") == "event_callback" else None
    if envelope is None:
        return _plain("Nothing to be done.", 200)
    outcome, retry_after = inbound.receive_event(envelope)
    if outcome is inbound.EventOutcome.LIMITED:
        return _plain("Too many messages at once.", 429, retry_after=retry_after)
    return _plain(f"{outcome.capitalize()}.", 200)


@_verify_signature
def interactions(request: HttpRequest, body: bytes) -> HttpResponse:
    """Receive a button that was pressed, or a form that was sent."""
    form = QueryDict(body, encoding="utf-8")
    payload = _document(form.get("payload") or "")
    if payload is None:
        return _plain("The body is not a form with a payload in JSON.", 400)
    answer = inbound.receive_answer(payload)
    if answer is None:
        inbound.receive_interaction(payload)
    return JsonResponse(answer) if answer else HttpResponse(status=200)


@require_safe
def oauth(request: HttpRequest) -> HttpResponse:
    """Redirect the browser from Slack to the admin of the tenant that began."""
    try:
        return HttpResponseRedirect(admin_url(request), headers={"Referrer-Policy": "no-referrer"})
    except InstallationInvalid as error:
        return _plain(str(error), 400)


def _document(text: bytes | str) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _plain(text: str, status: int, *, retry_after: float = 0) -> HttpResponse:
    headers = {"Retry-After": str(math.ceil(retry_after))} if retry_after else {}
    return HttpResponse(
        f"{text}\n", status=status, content_type="text/plain; charset=utf-8", headers=headers
    )
