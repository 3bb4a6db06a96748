"""Marking words in texts as HTML: a difference, or the words of a question. Pure."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from memory.text import lexical

# Comparing takes up to the cube of this number, a tenth of a second. Longer texts between the
# common beginning and end are shown as replaced.
MAX_WORDS = 250
_WORD = re.compile(r"\w+")
MAX_EXCERPT = 400  # characters
_PARTS = re.compile(r"\s++|\w++|[^\w\s]")


def marked_difference(old: str, new: str) -> SafeString:
    """Return the new text with marked additions, and the removed text."""
    before, after = _PARTS.findall(old), _PARTS.findall(new)
    begin = _in_common(before, after)
    end = _in_common(before[begin:][::-1], after[begin:][::-1])
    opening, closing = after[:begin], after[len(after) - end :]
    before, after = before[begin : len(before) - end], after[begin : len(after) - end]
    if len(before) > MAX_WORDS or len(after) > MAX_WORDS:
        before, after = ["".join(before)], ["".join(after)]
    parts: list[str] = [conditional_escape("".join(opening))]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, i, j, k, n in matcher.get_opcodes():
        if kind == "equal":
            parts.append(conditional_escape("".join(after[k:n])))
            continue
        if j > i:
            parts.append(format_html("<del>{}</del>", "".join(before[i:j])))
        if n > k:
            parts.append(format_html("<ins>{}</ins>", "".join(after[k:n])))
    parts.append(conditional_escape("".join(closing)))
    return mark_safe("".join(parts))  # noqa: S308  (each part is escaped)


def _in_common(before: Sequence[str], after: Sequence[str]) -> int:
    """How many parts two texts begin with in common."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((n for n, (old, new) in pairs if old != new), min(len(before), len(after)))


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
    if len(text) <= MAX_EXCERPT:
        return text
    start = next(
        (
            match.start()
            for match in _WORD.finditer(text, 0, 100_000)
            if not asked.isdisjoint(lexical.lexemes(match[0]))
        ),
        0,
    )
    start = max(0, start - MAX_EXCERPT // 3)
    shown = text[start : start + MAX_EXCERPT]
    return f"{'…' if start else ''}{shown}{'…' if start + MAX_EXCERPT < len(text) else ''}"
