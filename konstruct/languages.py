"""The language of pages: from the user menu, or from the browser. APIs are English."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers

from konstruct.api.http.problems import accepts_api_keys


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
