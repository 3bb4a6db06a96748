"""Unicode's normal forms of any text, in linear time. Pure."""

import unicodedata

import regex

# Normalising sorts the marks on a character, by insertion: a run of n different ones takes n²/4
# steps. No script puts more than a handful on one; Unicode's stream-safe format has 30 at most
# (UAX #15). The last two, of half width, become marks when they are decomposed.
MOST_MARKS = 30
_TOO_MANY_MARKS = regex.compile(rf"([\p{{M}}\uff9e\uff9f]{{{MOST_MARKS}}})[\p{{M}}\uff9e\uff9f]++")


def decomposed(text: str) -> str:
    """The text in form NFKD, without the marks of a character beyond its thirtieth."""
    return unicodedata.normalize("NFKD", _TOO_MANY_MARKS.sub(r"\1", text))
