"""What changed between two texts, word by word, as HTML. Pure."""

import re
from difflib import SequenceMatcher

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

# Comparing takes the square of this; what is longer is shown as replaced whole.
MOST_WORDS = 2_000
_PARTS = re.compile(r"\s+|\w+|[^\w\s]")


def marked_difference(old: str, new: str) -> SafeString:
    """The new text with what was added marked as such, and what was taken away."""
    before, after = _PARTS.findall(old), _PARTS.findall(new)
    if len(before) > MOST_WORDS or len(after) > MOST_WORDS:
        before, after = [old], [new]
    parts: list[str] = []
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, i, j, k, n in matcher.get_opcodes():
        if kind == "equal":
            parts.append(conditional_escape("".join(after[k:n])))
            continue
        if j > i:
            parts.append(format_html("<del>{}</del>", "".join(before[i:j])))
        if n > k:
            parts.append(format_html("<ins>{}</ins>", "".join(after[k:n])))
    return mark_safe("".join(parts))  # noqa: S308  (each part is escaped)
