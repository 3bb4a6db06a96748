"""The language of pages: chosen in the user menu, or asked for by the browser. APIs are English."""

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.http import HttpRequest, HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext_lazy

from konstruct.api.http.problems import takes_keys


class LanguageMiddleware:
    """Serves pages in the language of the cookie that the user menu sets, or of Accept-Language.

    Django's middleware would serve the APIs so too. Their texts are English, whatever is asked for:
    programs compare them. No address has a language in it, so no URL configuration is asked.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if takes_keys(request.path):
            return self.get_response(request)
        language = translation.get_language_from_request(request)
        with translation.override(language):
            response = self.get_response(request)
        response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ("Accept-Language",))
        return response


def translate_names_of_models() -> None:
    """Have pages show names, help texts and choices of models in the language of their reader.

    Most names of fields are those that Django makes of their attributes. Migrations do not see the
    change: it replaces what Django has derived, not what a field was declared with.
    """
    for model in apps.get_models():
        options = model._meta
        for name in ("verbose_name", "verbose_name_plural"):
            setattr(options, name, _translated(getattr(options, name)))
        for field in options.fields:
            field.verbose_name = _translated(field.verbose_name)
            field.help_text = _translated(field.help_text)
            if field.choices:
                field.choices = [(key, _translated(label)) for key, label in field.flatchoices]


def _translated(text: Any) -> Any:
    return gettext_lazy(text) if isinstance(text, str) and text else text
