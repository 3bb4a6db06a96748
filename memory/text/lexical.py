"""The words of the lexical channel: the terms stored of a text, their numbers and weights.

Words are stemmed here and not in Postgres, so that writing and asking agree whatever the server's
version or dictionaries are, and a recall needs no round trip to learn its own words. Pure.
"""

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Final, TypeVar

import numpy as np
import regex
from numpy.typing import NDArray

from memory.text.english import IRREGULAR, MONTHS, STOP_WORDS, TIME_WORDS

# Normalising sorts the marks on a character, by insertion: a run of n different ones takes n²/4
# steps. No script puts more than a handful on one; Unicode's stream-safe format has 30 at most
# (UAX #15). The last two, of half width, become marks when they are decomposed.
MAX_MARKS = 30
_TOO_MANY_MARKS = regex.compile(rf"([\p{{M}}\uff9e\uff9f]{{{MAX_MARKS}}})[\p{{M}}\uff9e\uff9f]++")


Numbers = TypeVar("Numbers", float, NDArray[np.float64])
# The average length is a constant, and earlier turns count with such shares: the one before, then
# the two before that. Measured in docs/measurements.md.
K1: Final = 0.6
B: Final = 0.3
AVERAGE_LENGTH: Final = 32
CONTEXT_WEIGHTS: Final = (0.5, 0.25, 0.25)
# What every turn of the user or the agent holds, so that "my" and "your" find the speaker as a
# name would. No word can be spelt so.
SPOKEN_BY = {"user": "@user", "assistant": "@agent"}
# Number of lexemes of each message beside its text: the speaker's, and its date.
BESIDE_TEXT = 4
# A longer run of letters is no word that anybody would ask for again.
MAX_WORD = 64
_TOKEN = regex.compile(
    r"""
      (?P<unspaced>[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々\p{M}]+)
    | \p{N}+(?:[.,]\p{N}+)+
    | [\p{L}\p{N}--[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]
      [\p{L}\p{N}\p{M}--[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]*
    """,
    regex.VERBOSE | regex.VERSION1,
)
# What that finds in a folded text of ASCII alone, in a quarter of the time.
_ASCII_TOKEN = re.compile(r"[0-9]+(?:[.,][0-9]+)+|[a-z0-9]+")
_LATIN_MARKS = regex.compile(r"(?<=\p{Latin})\p{M}++")
_YEAR = regex.compile(r"(?:19|20)\d\d")
_local = threading.local()
# Of 616,000 words of chats 94.8 % are among this many; with 65,536 it would be 95.5 %, and four
# times the memory, 22 MB for stems and hashes.
CACHED_WORDS: Final = 16_384


def decomposed(text: str) -> str:
    """The text in form NFKD, without the marks of a character beyond its thirtieth."""
    return unicodedata.normalize("NFKD", _TOO_MANY_MARKS.sub(r"\1", text))


def saturated(frequency: Numbers, length: Numbers, k1: float = K1, b: float = B) -> Numbers:
    """The weight of a word that is said so often in so many words (BM25)."""
    return frequency * (1 + k1) / (frequency + _damping(length, k1, b))


def frequency_of(weight: Numbers, length: Numbers) -> Numbers:
    """How often a word is said that has this weight in so many words."""
    return weight * _damping(length) / (1 + K1 - weight)


def _damping(length: Numbers, k1: float = K1, b: float = B) -> Numbers:
    return k1 * (1 - b + b * length / AVERAGE_LENGTH)


@lru_cache(maxsize=CACHED_WORDS)
def stem(word: str) -> str:
    """The stem of a folded word, so that "went" is "go" and "stories" is "story"."""
    # A Snowball stemmer keeps the word it works on in itself: one for each thread.
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:
        import snowballstemmer  # all its languages, which most commands do without

        stemmer = _local.stemmer = snowballstemmer.stemmer("english")
    stemmed: str = stemmer.stemWord(IRREGULAR.get(word, word))
    return stemmed


def words(text: str) -> list[str]:
    """The words of `text` in any script, folded: case, width, and the accents of Latin letters.

    Scripts without spaces give overlapping pairs of characters, the usual way to search them.
    """
    folded = text.casefold()
    if folded.isascii():
        return [token[:MAX_WORD] for token in _ASCII_TOKEN.findall(folded)]
    folded = decomposed(folded)
    folded = unicodedata.normalize("NFC", _LATIN_MARKS.sub("", folded))
    found: list[str] = []
    for match in _TOKEN.finditer(folded):
        token = match[0]
        if match["unspaced"] and len(token) > 2:
            found += [token[i : i + 2] for i in range(len(token) - 1)]
        else:
            found.append(token[:MAX_WORD])
    return found


def lexemes(text: str) -> list[str]:
    """The stems of the words of `text` that carry meaning, in order, repeats included."""
    return stems(words(text))


def stems(found: Iterable[str]) -> list[str]:
    """The stems of those words that carry meaning, in order, repeats included."""
    return [stem(word) for word in found if word not in STOP_WORDS]


def date_lexemes(moment: datetime) -> list[str]:
    """A date as people say it: "8 May 2023"."""
    utc = moment.astimezone(UTC)
    return [str(utc.day), stem(MONTHS[utc.month - 1]), str(utc.year)]


def holds_time(text: str) -> bool:
    """Whether the text says when: a weekday, a month, "yesterday", "last week", a year."""
    return any(word in TIME_WORDS or _YEAR.fullmatch(word) for word in words(text))


def term_weights(own: Sequence[str]) -> dict[str, float]:
    """The weight of every lexeme of a message, apart from the turns around it."""
    length = float(len(own))
    return {lexeme: saturated(float(tf), length) for lexeme, tf in Counter(own).items()}


@lru_cache(maxsize=CACHED_WORDS)
def lexeme_hash(lexeme: str) -> int:
    """The number that a posting carries for a lexeme: 64 bits, signed as Postgres' bigint is."""
    digest = blake2b(lexeme.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
