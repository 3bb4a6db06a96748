"""What the admin's pages may load, said to the browser: nothing but this host's own files."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

ADMIN_PREFIX = "/admin/"
# Alpine, which unfold is made with, evaluates what stands in attributes; no script may stand in a
# page, so that what users said cannot run even if it were not escaped. Styles may.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)


class AdminSecurityMiddleware:
    """Adds the policy to every page of the admin, and keeps them out of shared caches."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith(ADMIN_PREFIX):
            response.headers.setdefault("Content-Security-Policy", POLICY)
            response.headers.setdefault("Referrer-Policy", "same-origin")
        return response
