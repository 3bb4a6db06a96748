"""The lexemes of a text, as the lexical index stores them, with their hashes and weights.

Words are stemmed here and not in Postgres, so that writing and searching agree for any version and
dictionary of the server, and a recall needs no round trip for its words. Pure.
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

# Normalising sorts the combining marks of a character by insertion: n different ones take n²/4
# steps. No script has more than a handful; Unicode's stream-safe format allows 30 (UAX #15). The
# last two characters, of half width, become marks when they are decomposed.
MAX_MARKS = 30
_TOO_MANY_MARKS = regex.compile(rf"([\p{{M}}\uff9e\uff9f]{{{MAX_MARKS}}})[\p{{M}}\uff9e\uff9f]++")


Numbers = TypeVar("Numbers", float, NDArray[np.float64])
# The average length is a constant. Earlier turns count with these shares: the one before, then the
# two before that. docs/measurements.md has the measurements.
K1: Final = 0.6
B: Final = 0.3
AVERAGE_LENGTH: Final = 32
CONTEXT_WEIGHTS: Final = (0.5, 0.25, 0.25)
# A term of each turn of the user or the agent, so that "my" and "your" find the speaker as a name
# would. No word has this spelling.
SPEAKER_TERMS = {"user": "@user", "assistant": "@agent"}
# Number of lexemes of each message besides its text: of the speaker and the date.
SPEAKER_AND_DATE_LEXEMES = 4
# Longer runs of letters are no words that a person would search for.
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
# The same tokens for folded ASCII texts, in a quarter of the time.
_ASCII_TOKEN = re.compile(r"[0-9]+(?:[.,][0-9]+)+|[a-z0-9]+")
_LATIN_MARKS = regex.compile(r"(?<=\p{Latin})\p{M}++")
_YEAR = regex.compile(r"(?:19|20)\d\d")
_local = threading.local()
# Of 616,000 words of chats 94.8 % are among this many; with 65,536 it would be 95.5 %, with four
# times the memory, 22 MB for stems and hashes.
CACHED_WORDS: Final = 16_384


def decompose(text: str) -> str:
    """Return the text in form NFKD, with at most 30 marks for each character."""
    return unicodedata.normalize("NFKD", _TOO_MANY_MARKS.sub(r"\1", text))


def bm25_weight(frequency: Numbers, length: Numbers, k1: float = K1, b: float = B) -> Numbers:
    """Return the weight of a word with this frequency in a text of this length (BM25)."""
    return frequency * (1 + k1) / (frequency + _damping(length, k1, b))


def frequency_of(weight: Numbers, length: Numbers) -> Numbers:
    """Return the frequency of a word with this weight in a text of this length."""
    return weight * _damping(length) / (1 + K1 - weight)


def _damping(length: Numbers, k1: float = K1, b: float = B) -> Numbers:
    return k1 * (1 - b + b * length / AVERAGE_LENGTH)


@lru_cache(maxsize=CACHED_WORDS)
def stem(word: str) -> str:
    """Return the stem of a folded word, so that "went" is "go" and "stories" is "story"."""
    # A Snowball stemmer is not thread-safe: one for each thread.
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:
        import snowballstemmer  # loads all languages, which most commands do not need

        stemmer = _local.stemmer = snowballstemmer.stemmer("english")
    stemmed: str = stemmer.stemWord(IRREGULAR.get(word, word))
    return stemmed


def words(text: str) -> list[str]:
    """Return the words of `text` in any script, without case, width, and accents of Latin letters.

    Scripts without spaces give overlapping pairs of characters, the usual way to search them.
    """
    folded = text.casefold()
    if folded.isascii():
        return [token[:MAX_WORD] for token in _ASCII_TOKEN.findall(folded)]
    folded = decompose(folded)
    folded = unicodedata.normalize("NFC", _LATIN_MARKS.sub("", folded))
    tokens: list[str] = []
    for match in _TOKEN.finditer(folded):
        token = match[0]
        if match["unspaced"] and len(token) > 2:
            tokens += [token[i : i + 2] for i in range(len(token) - 1)]
        else:
            tokens.append(token[:MAX_WORD])
    return tokens


def lexemes(text: str) -> list[str]:
    """Return the stems of the words of `text` without stop words, in order, with repetitions."""
    return stems(words(text))


def stems(tokens: Iterable[str]) -> list[str]:
    """Return the stems of these words without stop words, in order, with repetitions."""
    return [stem(word) for word in tokens if word not in STOP_WORDS]


def date_lexemes(moment: datetime) -> list[str]:
    """Return a date as words: "8 May 2023"."""
    utc = moment.astimezone(UTC)
    return [str(utc.day), stem(MONTHS[utc.month - 1]), str(utc.year)]


def has_time_word(text: str) -> bool:
    """Return whether the text has a word of time: a weekday, a month, "yesterday", a year."""
    return any(word in TIME_WORDS or _YEAR.fullmatch(word) for word in words(text))


def term_weights(message_lexemes: Sequence[str]) -> dict[str, float]:
    """Return the weight of each lexeme of a message alone, without the turns before it."""
    length = float(len(message_lexemes))
    return {
        lexeme: bm25_weight(float(tf), length) for lexeme, tf in Counter(message_lexemes).items()
    }


@lru_cache(maxsize=CACHED_WORDS)
def lexeme_hash(lexeme: str) -> int:
    """Return the hash of a lexeme: 64 bits, signed like Postgres' bigint."""
    digest = blake2b(lexeme.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


# Letters that Unicode does not decompose into a letter and an accent.
_LETTERS: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
)


def fold(text: str) -> str:
    """Return a text without case, accents and repeated blanks: "Łukasz  É." becomes "lukasz e."."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    plain = "".join(character for character in decomposed if not unicodedata.combining(character))
    return " ".join(plain.translate(_LETTERS).split())
