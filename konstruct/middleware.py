"""Middleware of pages (policy, language) and of the API (request ids, problems, tenant of a key).

A page loads only files of its host. Its language is that of the user menu, or of the browser; APIs
are English.
"""

import json
import re
import uuid
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.middleware.common import CommonMiddleware
from django.utils import translation
from django.utils.cache import patch_vary_headers
from structlog.contextvars import clear_contextvars

from konstruct.api.auth.authentication import look_up_key
from konstruct.api.auth.keys import bearer_key, parse_key
from konstruct.api.http import problems
from tenants import context, exceptions, http, outages, serving
from tenants.traces import PATH_IN_SCOPE, bind_request_ids, logged_path

# No inline scripts, so that content of users cannot run even if it were not escaped. Inline styles
# are allowed.
_PAGES: Final = (
    "default-src 'none'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
)
POLICIES: Final = {
    # Unfold uses Alpine, which evaluates text of attributes. It is replaced by Alpine's CSP build:
    # konstruct/static_instead/, konstruct/static/konstruct/alpine.js.
    "/admin/": "; ".join((*_PAGES, "script-src 'self'", "form-action 'self'")),
    # Swagger UI, which calls the API with the key that the reader enters.
    "/api/docs/": "; ".join((*_PAGES, "script-src 'self'", "form-action 'none'")),
}


class Middleware:
    """A middleware, with what answers the request after it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response


class ContentSecurityMiddleware(Middleware):
    """Adds the policy to every page of the admin and of the API's documentation."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        for prefix, policy in POLICIES.items():
            if request.path.startswith(prefix):
                response.headers.setdefault("Content-Security-Policy", policy)
        return response


class LanguageMiddleware(Middleware):
    """Serves pages in the language of the user menu's cookie, or of Accept-Language.

    Django's middleware would do the same for the APIs. Their texts are always English, because
    programs compare them. Addresses contain no language, so the URL configuration is not searched.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if problems.accepts_api_keys(request.path):
            return self.get_response(request)
        language = translation.get_language_from_request(request)
        with translation.override(language):
            response = self.get_response(request)
        response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ("Accept-Language",))
        return response


HEADER = "X-Request-ID"
# An id that is sent back in a header and written into log lines has no line breaks.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class RequestIdMiddleware(Middleware):
    """Takes the caller's X-Request-ID, or makes one, and sends it back.

    From here on the log lines of the request name its ids. Under Konstruct's web server a request
    has its own context, so the lines that Django writes after all middleware name them too. Under
    other servers the next request has the same thread and context, so the ids are cleared.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        sent_id = request.headers.get(HEADER, "")
        request_id = sent_id if _REQUEST_ID.fullmatch(sent_id) else str(uuid.uuid4())
        clear_contextvars()
        bind_request_ids(request, request_id=request_id)
        try:
            response = self.get_response(request)
            response.headers[HEADER] = request_id
            if "Authorization" in request.headers:
                response.headers["Cache-Control"] = "no-store"
            return response
        finally:
            getattr(request, "scope", {})[PATH_IN_SCOPE] = logged_path(request)
            if not hasattr(request, "waits_in_event_loop"):
                clear_contextvars()


# Headers that a problem document copies from the response that it replaces.
COPIED_HEADERS = ("Retry-After",)
SUSPENDED = "This tenant is suspended. Its operator can resume it; its data is kept."
# Bytes of a body that are read before its key is verified.
MAX_SCANNED_BYTES = 1 << 16


class ProblemMiddleware(Middleware):
    """Converts errors of paths that accept API keys to the error format of the path.

    Django refuses some requests before a view sees them, such as an unknown host or path.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if (
            response.status_code < 400
            or getattr(response, "is_problem_document", False)
            or not problems.accepts_api_keys(request.path)
        ):
            return response
        return problems.problem_response(request, _problem_of(request, response))


def _problem_of(request: HttpRequest, response: HttpResponse) -> problems.Problem:
    """Return the problem that replaces a response of Django or of the tenant middleware."""
    headers = {name: response.headers[name] for name in COPIED_HEADERS if name in response.headers}
    if hasattr(request, "tenant") or headers:
        return problems.Problem.of_status(response.status_code, headers=headers)
    # TenantMiddleware sets `tenant`, or None. Without the attribute the Host header was refused.
    host = request.META.get("HTTP_HOST", "")
    detail = "The API is not served under this host name."
    if response.headers.get("Content-Type", "").startswith("text/plain"):
        detail = response.content.decode().strip()
    return problems.Problem.of_status(
        response.status_code, detail, errors=(problems.FieldError("Host", detail, host),)
    )


class PreservingRedirect(HttpResponsePermanentRedirect):
    """A redirect that keeps method and body, with a problem for clients that do not follow it."""

    status_code = HttpResponsePermanentRedirect.status_code_preserve_request

    def __init__(self, redirect_to: str, **options: Any) -> None:
        super().__init__(redirect_to, content_type=problems.MEDIA_TYPE, **options)
        detail = f"Addresses end with a slash: send the request to {redirect_to}"
        problem = problems.Problem(self.status_code, "missing-slash", detail)
        path = redirect_to.partition("?")[0].rstrip("/")
        self.content = json.dumps(
            problem.as_json(path=path, request_id=problems.current_request_id())
        )


class SlashMiddleware(CommonMiddleware):
    """Django's CommonMiddleware, but a POST to an address without its last slash stays a POST."""

    response_redirect_class = PreservingRedirect


class ApiKeyTenantMiddleware(Middleware):
    """Looks up the API key of a request, with its tenant and agent: `request.key_lookup`.

    On a host that serves all tenants it enters the tenant that the key names. This grants no
    access: authentication checks the key.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not problems.accepts_api_keys(request.path):
            return self.get_response(request)
        key = parse_key(bearer_key(request.headers.get("Authorization", "")) or "")
        tenant_id = context.current_tenant_id()
        if key is None or tenant_id not in (None, key.tenant_id):
            return self.get_response(request)
        with ExitStack() as scope:
            try:
                tenant = None
                if settings.TENANT_DATABASES:
                    tenant = serving.find_tenant(key.tenant_id)  # caches the tenant's server
                scope.enter_context(context.tenant_scope(key.tenant_id))
                key_lookup = look_up_key(key, agent=_requested_agent(request), tenant=tenant)
                request.key_lookup = key_lookup  # type: ignore[attr-defined]
                context.connection.set_tenant(key_lookup.tenant)
                if key_lookup.key is not None:
                    bind_request_ids(request, tenant_id=key.tenant_id, key_id=key_lookup.key.pk)
            except (exceptions.TenantPaused, outages.ServerDown) as error:
                return http.refuse_later(request, error)
            except exceptions.UnknownTenant:
                scope.close()
                return self.get_response(request)
            except exceptions.TenantNotServing:
                return problems.problem_response(
                    request, problems.Problem.of_status(403, SUSPENDED)
                )
            return self.get_response(request)


def _requested_agent(request: HttpRequest) -> str:
    """Return the `agent` of the query parameters, or of a JSON body of up to MAX_SCANNED_BYTES.

    It is looked up together with the key. The view validates it.
    """
    agent: object = None
    with suppress(SuspiciousOperation, ValueError, RecursionError):
        agent = request.GET.get("agent")
        length = request.headers.get("Content-Length", "")
        is_small = length.isascii() and length.isdigit() and int(length) <= MAX_SCANNED_BYTES
        if agent is None and is_small and request.content_type == "application/json":
            body = json.loads(request.body)
            agent = body.get("agent") if isinstance(body, dict) else None
    return agent if isinstance(agent, str) else ""
