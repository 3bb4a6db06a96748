"""Errors of services, which are English sentences with values, in the language of the reader."""

import json
import re
from functools import cache
from itertools import chain
from typing import Any, Final

from django import forms
from django.http import HttpRequest
from django.utils.translation import get_language, gettext
from django.views.i18n import JSONCatalog

# A longer text is no sentence of a service but, for example, contains a person's text.
MAX_CHARACTERS: Final = 2_000
_PLACE: Final = re.compile(r"\{[0-9]\}")


@cache
def _templates(language: str | None) -> list[tuple[re.Pattern[str], str]]:
    """Return the texts of the catalogue with places as patterns, long ones first, translated."""
    answer = JSONCatalog().get(HttpRequest(), domain="django")
    catalog = json.loads(answer.content)["catalog"]
    templates = sorted(filter(_PLACE.search, catalog), key=lambda text: -len(_PLACE.sub("", text)))
    return [(_pattern(text), catalog[text]) for text in templates]


def _pattern(template: str) -> re.Pattern[str]:
    first, *middle, last = map(re.escape, _PLACE.split(template))
    # Atomic groups, so that the time grows with the text's length, and not with a power of it.
    values = "".join(f"(?>(.*?){part})" for part in middle)
    return re.compile(f"{first}{values}(.*){last}", re.DOTALL)


def translate_error(text: str) -> str:
    """Return the sentence of a service in the reader's language; unchanged if none is stored.

    Services do not translate: programs compare their sentences, and rows keep some for readers of
    several languages. The catalogue has them with {0}, {1}… in the place of values. A value can be
    a sentence itself.
    """
    if len(text) > MAX_CHARACTERS:
        return text
    for pattern, translation in _templates(get_language()):
        if found := pattern.fullmatch(text):
            values = (translate_error(value) if " " in value else value for value in found.groups())
            return translation.format(*values)
    return gettext(text)


class TranslatedErrors(forms.BaseForm):
    """A form that shows the errors of services and models in the reader's language."""

    def add_error(self, field: str | None, error: Any) -> None:
        """Add an error, as Django does for each one, translated."""
        super().add_error(field, error)
        for problem in chain.from_iterable(self.errors.as_data().values()):
            # Sentences of services; Django's own with parameters are lazy texts.
            if not problem.params or isinstance(problem.message, str):
                problem.message = translate_error(str(problem.message))


class TranslatedModelForm(TranslatedErrors, forms.ModelForm):
    """The form of a model, with translated errors."""
