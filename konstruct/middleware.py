"""Middleware of pages: their Content-Security-Policy, and their language.

A page loads only files of its host. Its language is that of the user menu, or of the browser; APIs
are English.
"""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers

from konstruct.api.http.problems import accepts_api_keys

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


class ContentSecurityMiddleware:
    """Adds the policy to every page of the admin and of the API's documentation."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        for prefix, policy in POLICIES.items():
            if request.path.startswith(prefix):
                response.headers.setdefault("Content-Security-Policy", policy)
                response.headers.setdefault("Referrer-Policy", "same-origin")
        return response


class LanguageMiddleware:
    """Serves pages in the language of the user menu's cookie, or of Accept-Language.

    Django's middleware would do the same for the APIs. Their texts are always English, because
    programs compare them. Addresses contain no language, so the URL configuration is not searched.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if accepts_api_keys(request.path):
            return self.get_response(request)
        language = translation.get_language_from_request(request)
        with translation.override(language):
            response = self.get_response(request)
        response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ("Accept-Language",))
        return response
