"""Around every request of the API: the form of its errors, and the tenant of its key."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.middleware.common import CommonMiddleware

from konstruct.api.auth.key_text import bearer_key, parse_key
from konstruct.api.http.addresses import problem_response, takes_keys
from konstruct.api.http.problems import FieldError, Problem
from tenants.context import current_tenant_id, tenant_scope
from tenants.exceptions import TenantBehind, TenantNotServing, UnknownTenant
from tenants.http.middleware import refuse_behind
from tenants.http.streaming import streamed_inside
from tenants.serving import require_serving

GetResponse = Callable[[HttpRequest], HttpResponse]

# Of a response that a problem stands for.
KEPT_HEADERS = ("Retry-After",)


class ProblemMiddleware:
    """Turns every error at an address of API keys into the form of that address.

    Django refuses some requests before a view sees them: an unknown host, an unknown path, a body
    that is too large.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if (
            response.status_code < 400
            or getattr(response, "tells_problem", False)
            or not takes_keys(request.path)
        ):
            return response
        return problem_response(request, _problem_of(request, response))


def _problem_of(request: HttpRequest, response: HttpResponse) -> Problem:
    """Return the problem that Django's own response, or the tenant middleware's, stands for."""
    headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    if hasattr(request, "tenant") or headers:
        return Problem.of_status(response.status_code, headers=headers)
    # No tenant was found, and none was found not to be needed: the Host header was refused.
    host = request.META.get("HTTP_HOST", "")
    detail = "The API is not served under this host name."
    if response.headers.get("Content-Type", "").startswith("text/plain"):
        detail = response.content.decode().strip()
    return Problem.of_status(
        response.status_code, detail, errors=(FieldError("Host", detail, host),)
    )


class PreservingRedirect(HttpResponsePermanentRedirect):
    """A redirect that keeps method and body."""

    status_code = HttpResponsePermanentRedirect.status_code_preserve_request


class SlashMiddleware(CommonMiddleware):
    """Django's CommonMiddleware, but a POST to an address without its last slash stays a POST."""

    response_redirect_class = PreservingRedirect


class ApiKeyTenantMiddleware:
    """On a host that serves all tenants, enters the tenant that the API key names.

    This opens nothing: the key is checked inside, against the keys of that tenant alone.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not takes_keys(request.path) or current_tenant_id() is not None:
            return self.get_response(request)
        key = parse_key(bearer_key(request.headers.get("Authorization", "")) or "")
        if key is None:
            return self.get_response(request)
        try:
            require_serving(key.tenant_id)
        except TenantBehind as error:
            return refuse_behind(error)
        except (UnknownTenant, TenantNotServing):
            return self.get_response(request)
        with tenant_scope(key.tenant_id, pinned=True):
            return streamed_inside(self.get_response(request), key.tenant_id)
