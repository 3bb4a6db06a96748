"""Statements that a newer one replaces, by their words. Pure.

"We moved ssh to 49222" replaces "the port for ssh is 22": both are the user's, they share words
that no other statement has, and the newer one has a word of change, or differs by a number alone.
A search ranks it lower if it lacks words of the question ("port").
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

import regex

from memory.text.lexical import lexemes, main_language

_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
# The rarity of the words that two statements share: of each, 1 / the number of other statements
# with it. No figure of LoCoMo's dialogues 0-3 falls; without the conditions on questions about
# others, R@3 falls from .694 to .680.
MIN_SHARED = 1.0
MIN_SHARED_ASKED = 0.5
MAX_WORDS = 12
MAX_LIKENESS = 0.7


@dataclass(frozen=True, slots=True)
class Statement:
    """A message that was found."""

    text: str
    said_at: datetime
    by_user: bool


@cache
def _pattern(kind: str, language: str) -> "regex.Pattern[str] | None":
    """Return the pattern of the listed words of a language; None without any."""
    words = [
        regex.escape(word).replace(r"\*", r"\w*") for word in _LISTS[kind].get(language, "").split()
    ]
    if not words:
        return None
    edge = "" if language in _LISTS["unspaced"] else r"\b"
    return regex.compile(rf"{edge}(?:{'|'.join(words)}){edge}", regex.IGNORECASE)


def _has_words(kind: str, text: str, *languages: str) -> bool:
    """Return whether a text has listed words of one of the languages.

    The words of one are others in another: German "was", which asks, is no English "was".
    """
    patterns = (_pattern(kind, language) for language in languages)
    return any(pattern is not None and pattern.search(text) for pattern in patterns)


@cache
def _endings() -> "regex.Pattern[str]":
    parts = [
        ".{0,60}".join(map(regex.escape, phrase.split("…")))
        for phrases in _LISTS["ended"].values()
        for phrase in phrases.split("|")
    ]
    return regex.compile("|".join(parts), regex.IGNORECASE)


def says_no_longer(text: str) -> bool:
    """Return whether a text says that something has ended."""
    return _endings().search(text) is not None


def differs_by_one_word(first: str, second: str) -> bool:
    """Return whether two texts have the same words except for one of each, such as a number."""
    words, others = set(lexemes(first)), set(lexemes(second))
    if not len(words - others) == len(others - words) == 1:
        return False
    (word,), (other,) = words - others, others - words
    # Not another spelling.
    return word.isdigit() or SequenceMatcher(None, word, other).ratio() < MAX_LIKENESS


def replacements(
    statements: Sequence[Statement], query: str, *, mentions_user: bool
) -> dict[int, int]:
    """Return the position of the statement that replaces each older one, by the older's position.

    Args:
        statements: what was found for the question.
        query: the question. One about the past has no replacements.
        mentions_user: whether it asks about the user. In answers about others, both statements are
            short and share a word of the question.
    """
    language = main_language(query) or "en"
    if _has_words("past", query, language):
        return {}
    found = [set(lexemes(statement.text)) for statement in statements]
    asked = set(lexemes(query))
    frequency = Counter(lexeme for words in found for lexeme in words)

    def weight(shared: set[str]) -> float:
        return sum(1 / (frequency[word] - 1) for word in shared if not word.isdigit())

    replaced: dict[int, int] = {}
    for newer, statement in enumerate(statements):
        if not statement.by_user:
            continue
        for older, other in enumerate(statements):
            if not other.by_user or other.said_at >= statement.said_at:
                continue
            shared = found[newer] & found[older]
            is_about_same = mentions_user or (
                weight(shared & asked) >= MIN_SHARED_ASKED
                and max(len(found[newer]), len(found[older])) <= MAX_WORDS
            )
            last = statements[replaced.get(older, older)]
            if (
                is_about_same
                and weight(shared) >= MIN_SHARED
                and last.said_at < statement.said_at
                and (
                    _differs_by_a_number(found[newer], found[older])
                    or _has_words("words", statement.text, main_language(statement.text), language)
                )
            ):
                replaced[older] = newer
    return replaced


def _differs_by_a_number(words: set[str], others: set[str]) -> bool:
    numbers = words ^ others
    return len(numbers) == 2 and all(word.isdigit() for word in numbers)


def newer_first(ranking: Iterable[int], replaced: dict[int, int]) -> list[int]:
    """Return positions in their order, each older statement directly after its replacement."""
    order = list(ranking)
    for older in list(order):
        newer = replaced.get(older)
        if newer in order and order.index(newer) > order.index(older):
            order.remove(newer)
            order.insert(order.index(older), newer)
    return order
