"""Translations in non-Latin letters: a text that stays in Latin letters has no translation.

A German page has words that are the same in English. With these letters all translated texts are
recognizable, also inside a sentence.
"""

import re
from html import unescape
from typing import Any

import pytest
from django.utils.translation.trans_real import DjangoTranslation

LATIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
GREEK = "".join(chr(0x1D6A8 + place) for place in range(len(LATIN)))
# Placeholders, elements and entities of a translation.
PLACEHOLDERS = re.compile(r"(%\(\w+\)[a-z]|%[sd%]|\{[\w.!:]*\}|<[^>]*>|&#?\w+;)")
# Parts of a page without texts for readers: copyable values, and names of icons.
NO_TEXT = re.compile(
    r"<(script|style|template|svg|pre|code|textarea)\b.*?</\1>"
    r'|<span[^>]*class="[^"]*(?:material-symbols|k-exact).*?</span>',
    re.DOTALL,
)
# An attribute of an element may have ">".
ELEMENT = re.compile(r"""<(?:"[^"]*"|'[^']*'|[^"'>])*>""")
READ_OUT = re.compile(r"""\s(?:aria-label|alt|placeholder|title)="([^"]+)\"""")
WORD = re.compile(r"[a-zA-Z]{2}")


def disguised(text: str) -> str:
    """Return a translation in other letters."""
    parts = PLACEHOLDERS.split(text)
    return "".join(
        part if place % 2 else part.translate(str.maketrans(LATIN, GREEK))
        for place, part in enumerate(parts)
    )


def disguise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace all translations by other letters. Texts without a translation stay."""
    plain, plain_plural = DjangoTranslation.gettext, DjangoTranslation.ngettext

    def gettext(self: Any, message: str) -> str:
        known = self._catalog.get(message) or self._catalog.get((message, self.plural(1)))
        return disguised(plain(self, message)) if known else plain(self, message)

    def ngettext(self: Any, singular: str, plural: str, number: int) -> str:
        found = plain_plural(self, singular, plural, number)
        return found if found in (singular, plural) else disguised(found)

    monkeypatch.setattr(DjangoTranslation, "gettext", gettext)
    monkeypatch.setattr(DjangoTranslation, "ngettext", ngettext)


def texts_of(page: str) -> set[str]:
    """Return the texts of a page that contain words in Latin letters."""
    visible = NO_TEXT.sub("", page)
    elements = ELEMENT.findall(visible)
    texts = [
        *ELEMENT.split(visible),
        *(read for element in elements for read in READ_OUT.findall(element)),
    ]
    return {" ".join(unescape(text).split()) for text in texts if WORD.search(unescape(text))}
