"""Marks words of texts in HTML: a difference, or the words of a query. Pure."""

import re
from collections.abc import Iterable, Sequence
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


def mark_difference(old: str, new: str) -> SafeString:
    """Return the new text with marked additions, and the removed text."""
    before, after = _PARTS.findall(old), _PARTS.findall(new)
    begin = _count_common_parts(before, after)
    end = _count_common_parts(before[begin:][::-1], after[begin:][::-1])
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


def _count_common_parts(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the number of equal parts at the beginning of two texts."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((n for n, (old, new) in pairs if old != new), min(len(before), len(after)))


def highlight(text: str, query: str) -> SafeString:
    """Return the text as HTML with the words of a query marked; of a long text, an excerpt."""
    # A word alone does not show its language.
    latin = lexical.language_of_latin_words(lexical.analyse(text[:MAX_EXCERPT]))
    query_lexemes = set(lexical.lexemes(query, latin))
    excerpt = text
    if len(text) > MAX_EXCERPT:
        # Around the first word of the query.
        words = _WORD.finditer(text, 0, 100_000)
        found = (
            word.start()
            for word in words
            if not query_lexemes.isdisjoint(lexical.lexemes(word[0], latin))
        )
        start = max(0, next(found, 0) - MAX_EXCERPT // 3)
        end = start + MAX_EXCERPT
        excerpt = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
    spans = [
        match.span()
        for match in _WORD.finditer(excerpt)
        if not query_lexemes.isdisjoint(lexical.lexemes(match[0], latin))
    ]
    return marked_spans(excerpt, spans)


def marked_spans(text: str, spans: Iterable[tuple[int, int]]) -> SafeString:
    """Return a text as HTML with these spans marked."""
    parts, position = [], 0
    for start, end in sorted(spans):
        start = max(start, position)
        if start < end and start < len(text):
            parts += [
                conditional_escape(text[position:start]),
                format_html("<mark>{}</mark>", text[start:end]),
            ]
            position = end
    return mark_safe("".join([*parts, conditional_escape(text[position:])]))  # noqa: S308  (escaped)
