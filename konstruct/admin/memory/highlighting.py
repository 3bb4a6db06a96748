"""Marking in a text the words that a question shares with it, by their stems. Pure."""

import re

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from memory.text import lexical

_WORD = re.compile(r"\w+")
EXCERPT = 400


def highlighted(text: str, query: str) -> SafeString:
    """The text as HTML with the question's words marked; of a long text, the part with the most."""
    asked = set(lexical.lexemes(query))
    shown = _excerpt(text, asked)
    parts, end = [], 0
    for match in _WORD.finditer(shown):
        if not asked.isdisjoint(lexical.lexemes(match[0])):
            parts += [
                conditional_escape(shown[end : match.start()]),
                format_html("<mark>{}</mark>", match[0]),
            ]
            end = match.end()
    return mark_safe("".join([*parts, conditional_escape(shown[end:])]))  # noqa: S308  (escaped)


def _excerpt(text: str, asked: set[str]) -> str:
    """The part of a long text around the first word in common."""
    if len(text) <= EXCERPT:
        return text
    start = next(
        (
            match.start()
            for match in _WORD.finditer(text, 0, 100_000)
            if not asked.isdisjoint(lexical.lexemes(match[0]))
        ),
        0,
    )
    start = max(0, start - EXCERPT // 3)
    shown = text[start : start + EXCERPT]
    return f"{'…' if start else ''}{shown}{'…' if start + EXCERPT < len(text) else ''}"
