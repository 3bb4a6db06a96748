"""The lexemes of a text, as the lexical index stores them, with their hashes and weights.

Folding gives one spelling to texts that people write with other accents, letters, case or width.
Words of the index, names of people and their searches are folded in the same way.

Words of a script of one language, such as Cyrillic, have its language. Of a Latin text the frequent
words decide, and English if no other language has more of them. Agents and users may have one.

Words are stemmed here and not in Postgres, so that writing and searching agree for any version and
dictionary of the server, and a recall needs no round trip for its words. Pure.
"""

import re
import threading
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

import numpy as np
import regex
from numpy.typing import NDArray

# A language is recognized by frequent words of at least this many letters together: not by "Los"
# in "Los Angeles".
MIN_LETTERS: Final = 4


# Normalising sorts the combining marks of a character by insertion: n different ones take n²/4
# steps. No script has more than a handful; Unicode's stream-safe format allows 30 (UAX #15). The
# last two characters, of half width, become marks when they are decomposed.
MAX_MARKS = 30
_TOO_MANY_MARKS = regex.compile(rf"([\p{{M}}\uff9e\uff9f]{{{MAX_MARKS}}})[\p{{M}}\uff9e\uff9f]++")
# Letters that decompose into no letter with a mark. "ı" is the Turkish one without a dot.
_LETTERS: Final = str.maketrans(
    {
        **dict(zip("łøđðħŧıĸ", "loddhtik", strict=True)),
        "æ": "ae", "œ": "oe", "þ": "th",
        # Cyrillic and Arabic letters that people write for one another; a mark of lengthening.
        "ё": "е", "ґ": "г",
        **dict.fromkeys("أإآٱ", "ا"), "ى": "ي", "ی": "ي", "ک": "ك", "ة": "ه", "ؤ": "و", "ئ": "ي",
        "ـ": "",
        # Devanagari: the nasal sign of a vowel, and the dot of borrowed sounds.
        "ँ": "ं", "़": "",
    }
)  # fmt: skip
# Accents, and the vowels that Arabic and Hebrew usually leave out.
_MARKS: Final = regex.compile(r"(?<=[\p{Latin}\p{Greek}\p{Hebrew}\p{Arabic}])\p{M}++")
# "हिन्दी" and "हिंदी" are the same word.
_NASALS: Final = regex.compile(r"[ङञणनम]्(?=[क-ह])")
_DIGIT: Final = regex.compile(r"[\p{Nd}--0-9]", regex.VERSION1)


def decompose(text: str) -> str:
    """Return the text in form NFKD, with at most 30 marks for each character."""
    return unicodedata.normalize("NFKD", _TOO_MANY_MARKS.sub(r"\1", text))


def fold(text: str) -> str:
    """Return a text without case, accents and repeated blanks: "Łukasz  É." becomes "lukasz e."."""
    return " ".join(_fold(text.casefold()).split())


# Of 616,000 words of chats 94.8 % are among this many; with 65,536 it would be 95.5 %, with four
# times the memory, 22 MB for stems and hashes.
CACHED_WORDS: Final = 16_384


@lru_cache(maxsize=CACHED_WORDS)
def fold_word(word: str) -> str:
    """Return a word in lower case as `fold` does."""
    return word if word.isascii() else _fold(word)


def _fold(lower: str) -> str:
    # Arabic letters with a mark, such as "أ", are composed before they are replaced.
    letters = unicodedata.normalize("NFC", _MARKS.sub("", decompose(lower))).translate(_LETTERS)
    return _DIGIT.sub(lambda digit: str(int(digit[0])), _NASALS.sub("ं", letters))


def word_set(text: str) -> frozenset[str]:
    """Return the folded words of a list of words."""
    return frozenset(fold(text).split())


# --- English -------------------------------------------------------------------------------------

_WORDS: Final = tomllib.loads(Path(__file__).with_name("languages.toml").read_text("utf-8"))
_ENGLISH, _ENDINGS = _WORDS.pop("en"), _WORDS.pop("endings")
STOP_WORDS = word_set(_ENGLISH["stop_words"])
IRREGULAR = {
    form: group.split()[0]
    for line in _ENGLISH["irregular"].splitlines()
    for group in line.split("|")
    for form in group.split()[1:]
}
MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
TIME_WORDS = word_set(_ENGLISH["time"])
QUESTION_WORDS = word_set(_ENGLISH["questions"])


# --- Languages -----------------------------------------------------------------------------------


# Words of speakers and of questions for a time.
WORD_LISTS: Final = ("user", "agent", "when")


@dataclass(frozen=True, eq=False)
class Language:
    """A language, with folded words."""

    code: str
    stemmer: str = ""
    """The name of its algorithm in Snowball, or ""."""
    stop_words: frozenset[str] = frozenset()
    user: frozenset[str] = frozenset()
    """Pronouns of the speaker."""
    agent: frozenset[str] = frozenset()
    """Pronouns of the person who is addressed."""
    when: frozenset[str] = frozenset()
    """Words that ask for a time."""
    time: frozenset[str] = frozenset()
    months: Mapping[str, int] = field(default_factory=dict)
    """The number of each month, from 0."""
    drops_subject: bool = False
    """Whether a speaker is usually named by the form of the verb alone, or not at all."""
    capitalizes_nouns: bool = False
    joins_words: bool = False
    """Whether two nouns are written as one word: "Schrebergarten"."""
    letters: frozenset[str] = frozenset()
    """Letters of its alphabet that English has not."""


def _language(code: str, *, letters: str = "", months: str = "", **listed: Any) -> Language:
    numbers = {
        name: number
        for number, names in enumerate(months.split())
        for name in word_set(names.replace("/", " "))
    }
    words: dict[str, Any] = {
        name: word_set(listed.pop(name)) for name in ("stop_words", *WORD_LISTS, "time")
    }
    words["stop_words"] = words["stop_words"].union(*(words[name] for name in WORD_LISTS))
    words["time"] |= numbers.keys()
    return Language(code, letters=frozenset(letters), months=numbers, **words, **listed)


_SPEAKERS: Final = (word_set(_ENGLISH["user"]), word_set(_ENGLISH["agent"]))
ENGLISH: Final = Language("en", "english", STOP_WORDS, *_SPEAKERS, time=TIME_WORDS)
_LISTED: Final = {code: _language(code, **words) for code, words in _WORDS.items()}
LATIN: Final = (ENGLISH, *(_LISTED[code] for code, words in _WORDS.items() if "letters" in words))
LATIN_BY_CODE: Final = {language.code: language for language in LATIN}
FREQUENT_ENGLISH: Final = STOP_WORDS | QUESTION_WORDS
# The languages in which a word is frequent.
_FREQUENT_IN: Final[dict[str, list[Language]]] = {}
for _latin in LATIN:
    for _frequent in FREQUENT_ENGLISH if _latin is ENGLISH else _latin.stop_words:
        _FREQUENT_IN.setdefault(_frequent, []).append(_latin)
# Marks words of a text that does not show its language.
UNKNOWN: Final = Language("", "english")
# Words without their particles.
HANGUL: Final = _LISTED["ko"]
# Chinese and Japanese, and Thai and its neighbours, of which no words are listed.
UNSPACED: Final = _LISTED["zh"]
_BY_SCRIPT: Final = (
    (regex.compile(r"\p{Cyrillic}"), _LISTED["ru"]),
    (regex.compile(r"\p{Arabic}"), _LISTED["ar"]),
    (regex.compile(r"\p{Devanagari}"), _LISTED["hi"]),
    (regex.compile(r"\p{Hangul}"), HANGUL),
    (regex.compile(r"\p{Greek}"), Language("el", "greek")),
    (regex.compile(r"\p{Armenian}"), Language("hy", "armenian")),
    (regex.compile(r"\p{Tamil}"), Language("ta", "tamil")),
    (regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]"), UNSPACED),
)

# Norwegian and Nynorsk have the stems of Bokmål.
_SAME_STEMS: Final = {"no": "nb", "nn": "nb"}
# The settings of agents: language and time zone, or "", by the agents' ids.
AgentLocales = Callable[[Collection[UUID]], Mapping[UUID, tuple[str, str]]]
_agent_locales: list[AgentLocales] = []


def latin_by_tag(tag: str) -> Language | None:
    """Return the Latin language of a tag such as "pt-BR"; None if it is no such, or not indexed."""
    code = tag.partition("-")[0].lower()
    return LATIN_BY_CODE.get(_SAME_STEMS.get(code, code))


def register_agent_locales(locales: AgentLocales) -> None:
    """Register the function that reads the agents' languages and time zones."""
    _agent_locales[:] = [locales]


def locales_of_agents(agent_ids: Collection[UUID]) -> dict[UUID, tuple[str, str]]:
    """Return the language and the time zone of each agent, or ""."""
    return {
        agent_id: locale
        for locales in _agent_locales
        for agent_id, locale in locales(agent_ids).items()
    }


def latin_language(
    words: Sequence[str], folded: Sequence[str], unknown: Language = ENGLISH
) -> Language:
    """Return the language of the Latin words of a text, by its frequent words and its letters.

    Args:
        words: the words in lower case.
        folded: the same words, folded; the same object if all are ASCII.
        unknown: the language of a text that does not show it.
    """
    counts = dict.fromkeys(LATIN, 0)
    letters = dict.fromkeys(LATIN, 0)
    for word in folded:
        for language in _FREQUENT_IN.get(word, ()):
            counts[language] += 1
            letters[language] += len(word)
    for word in words if words is not folded else ():
        accented = {letter for letter in word if not letter.isascii()}
        for language in LATIN if accented else ():
            if accented <= language.letters:
                counts[language] += 1
                letters[language] += MIN_LETTERS
    # Of equal counts, English.
    likely = max(LATIN, key=counts.__getitem__)
    return likely if letters[likely] >= MIN_LETTERS else unknown


@lru_cache(maxsize=CACHED_WORDS)
def language_of(word: str, latin: Language) -> Language:
    """Return the language of a folded word in a text with this language of its Latin words."""
    if word.isascii():
        return latin
    return next((language for script, language in _BY_SCRIPT if script.match(word)), latin)


# --- Lexemes -------------------------------------------------------------------------------------

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
# Of a word that may consist of two, the last letters are a lexeme too; parts have as many letters.
END_LETTERS: Final = (6, 4)
MIN_PART: Final = 4
FIRST_PART: Final = "haus"
# Longer runs of letters are no words that a person would search for.
MAX_WORD = 64
MAX_WORDS_OF_UNKNOWN_LANGUAGE = 16
_TOKEN = regex.compile(
    r"""
      (?P<han>[\p{Han}々]+)
    | (?P<hiragana>[\p{Hiragana}]+)
    | (?P<katakana>[\p{Katakana}ー]+)
    | (?P<unspaced>[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{M}]+)
    | (?P<hangul>\p{Hangul}+)
    | \p{N}+(?:[.,]\p{N}+)+
    | [\p{L}\p{N}--[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]
      [\p{L}\p{N}\p{M}--[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]*
    """,
    regex.VERBOSE | regex.VERSION1,
)
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
# Characters that change the shape of a word only. In Arabic script a non-joiner separates.
_INVISIBLE = regex.compile(r"(?<!\p{Arabic})\u200c|[\u00ad\u200d\u2060]")
# The same tokens for folded ASCII texts, in a quarter of the time.
_ASCII_TOKEN = re.compile(r"[0-9]+(?:[.,][0-9]+)+|[a-z0-9]+")
_MONTH_NUMBERS = frozenset(map(str, range(1, 13)))
_YEAR = regex.compile(r"(?:19|20)\d\d")
_local = threading.local()


def bm25_weight(frequency: Numbers, length: Numbers, k1: float = K1, b: float = B) -> Numbers:
    """Return the weight of a word with this frequency in a text of this length (BM25)."""
    return frequency * (1 + k1) / (frequency + _damping(length, k1, b))


def frequency_of(weight: Numbers, length: Numbers) -> Numbers:
    """Return the frequency of a word with this weight in a text of this length."""
    return weight * _damping(length) / (1 + K1 - weight)


def _damping(length: Numbers, k1: float = K1, b: float = B) -> Numbers:
    return k1 * (1 - b + b * length / AVERAGE_LENGTH)


class Word(NamedTuple):
    """A word of a text."""

    text: str
    """Folded."""
    language: Language
    lexeme: str
    """Its stem; "" of a word that is too frequent to find something."""


@lru_cache(maxsize=CACHED_WORDS)
def stem(word: str, language: Language = ENGLISH) -> str:
    """Return the stem of a folded word, so that "went" is "go" and "stories" is "story"."""
    if language is ENGLISH:
        word = IRREGULAR.get(word, word)
    # A Snowball stemmer is not thread-safe: one for each thread.
    stemmers = _local.__dict__.setdefault("stemmers", {})
    if language.stemmer not in stemmers:
        import snowballstemmer  # loads all languages, which most commands do not need

        stemmers[language.stemmer] = snowballstemmer.stemmer(language.stemmer)
    stemmed: str = stemmers[language.stemmer].stemWord(word)
    return fold_word(stemmed)


def words(text: str) -> list[str]:
    """Return the folded words of `text` in any script, without case, width and accents."""
    folded = text.casefold()
    if folded.isascii():
        return [token[:MAX_WORD] for token in _ASCII_TOKEN.findall(folded)]
    return [word.text for word in analyse(text)]


def analyse(text: str, latin: Language | None = None, *, unknown: Language = ENGLISH) -> list[Word]:
    """Return the words of a text in any script, in order, each with its language and lexeme.

    Scripts without spaces give overlapping pairs of characters, the usual way to search them.

    Args:
        text: the text.
        latin: the language of its Latin words; by default that of most of its frequent words.
        unknown: their language if the text does not show it.
    """
    lower = text.casefold()
    if lower.isascii():
        tokens = [token[:MAX_WORD] for token in _ASCII_TOKEN.findall(lower)]
        latin = latin or latin_language(tokens, tokens, unknown)
        return [_word(token, latin) for token in tokens]
    lower = unicodedata.normalize("NFC", decompose(_INVISIBLE.sub("", lower)))
    matches = list(_TOKEN.finditer(lower))
    spaced = [match[0] for match in matches if match.lastgroup is None]
    folded = [fold_word(word) for word in spaced]
    latin = latin or latin_language(spaced, folded, unknown)
    is_japanese = bool(_KANA.search(lower))
    found: list[Word] = []
    for match in matches:
        token, script = match[0], match.lastgroup
        if token[0] in "月월" and found and found[-1].text in _MONTH_NUMBERS:
            found.append(Word(token[0], UNSPACED, stem(MONTHS[int(found[-1].text) - 1])))
            token = token[1:] if script == "han" else ""
        if not token:
            continue
        if script is None:
            found.append(_word(token[:MAX_WORD], latin))
        elif script == "hangul":
            found += _korean_words(token[:MAX_WORD])
        elif script == "han" or script == "hiragana":
            cut = cut_hiragana(token)
            if script == "han":
                cut = cut_han(token, is_japanese=is_japanese)
            found += [
                Word(part, UNSPACED, "" if is_function else part) for part, is_function in cut
            ]
        else:
            found += [Word(part, UNSPACED, part) for part in cut_word(token[:MAX_WORD])]
    return found


def _korean_words(token: str) -> list[Word]:
    word = token if token in HANGUL.stop_words else without_ending(token)
    if word in HANGUL.stop_words:
        return [Word(word, HANGUL, "")]
    return [Word(part, HANGUL, part) for part in cut_word(word)]


def _word(token: str, latin: Language) -> Word:
    folded = fold_word(token)
    language = language_of(folded, latin)
    if folded in language.months:
        return Word(folded, language, stem(MONTHS[language.months[folded]]))
    # Stemmers know endings with accents: French "foulée" and "foulé" have one stem.
    word = token if language in LATIN else folded
    return Word(folded, language, "" if folded in language.stop_words else stem(word, language))


def lexemes(text: str, latin: Language | None = None) -> list[str]:
    """Return the stems of the words of `text` without stop words, in order, with repetitions.

    Args:
        text: the text.
        latin: the language of its Latin words; by default that of most of its frequent words.
    """
    found = [word for word in analyse(text, latin) if word.lexeme]
    return [
        lexeme for word in found for lexeme in (word.lexeme, *_ends(word.lexeme, word.language))
    ]


def _ends(stemmed: str, language: Language) -> list[str]:
    """Return lexemes for the end of a word that may consist of two: "Schrebergarten"."""
    if not language.joins_words:
        return []
    return [f"~{stemmed[-end:]}" for end in END_LETTERS if len(stemmed) >= end + MIN_PART]


@lru_cache(maxsize=CACHED_WORDS)
def _joined(word: str, language: Language) -> frozenset[str]:
    """Return lexemes of other words that end with a word, or that are the beginning or end of it.

    "Garten" finds "Schrebergarten", and "Fotoserver" finds "Server".
    """
    if not language.joins_words:
        return frozenset()
    cuts = range(MIN_PART, len(word) - MIN_PART + 1)
    parts = {stem(part, language) for cut in cuts for part in (word[:cut], word[cut:])}
    # As a stemmer sees the end of a longer word, of which it removes more.
    end = stem(f"{FIRST_PART}{word}", language).removeprefix(FIRST_PART)
    length = next((length for length in END_LETTERS if len(end) >= length), None)
    ends = {f"~{end[-length:]}"} if length else set()
    return frozenset({part for part in parts if len(part) >= MIN_PART} | ends)


def alternatives(words: Sequence[Word], *, limit: int | None = None) -> dict[str, str]:
    """Return the lexemes that messages with the words of a query may have, at most `limit`.

    A query such as "Wohnungen" does not show its language. Then each word has a lexeme for each
    Latin language. A longer text without frequent words is in no language.

    Returns:
        Each lexeme with that of its word in `words`; the latter come first.
    """
    found = {word.lexeme: word.lexeme for word in words if word.lexeme}
    is_known = any(word.language is not ENGLISH or word.text in FREQUENT_ENGLISH for word in words)
    if not is_known and len(words) <= MAX_WORDS_OF_UNKNOWN_LANGUAGE:
        for word in words:
            for language in LATIN:
                found.setdefault(stem(word.text, language), word.lexeme)
    for word in words:
        if word.lexeme and word.language in LATIN:
            # The message may have been written without accents.
            for lexeme in (stem(word.text, word.language), *_joined(word.text, word.language)):
                found.setdefault(lexeme, word.lexeme)
    return dict(islice(found.items(), limit))


def shows_language(text: str) -> bool:
    """Return whether the language of a text's Latin words is known from its frequent words."""
    return all(word.language is not UNKNOWN for word in analyse(text, unknown=UNKNOWN))


def main_language(text: str) -> str:
    """Return the code of the language of most words of a text; "" if the text does not show it."""
    counts = Counter(word.language.code for word in analyse(text, unknown=UNKNOWN))
    return max(counts, key=counts.__getitem__, default="")


def language_of_latin_words(words: Iterable[Word]) -> Language:
    """Return the language in which the Latin words of a text are stemmed."""
    return next((word.language for word in words if word.language in LATIN), ENGLISH)


def date_lexemes(moment: datetime) -> list[str]:
    """Return a date in the time zone of the moment as words: "8 May 2023"."""
    return [str(moment.day), stem(MONTHS[moment.month - 1]), str(moment.year)]


def has_time_word(text: str) -> bool:
    """Return whether the text has a word of time: a weekday, a month, "yesterday", a year."""
    return any(
        word.text in word.language.time or _YEAR.fullmatch(word.text) for word in analyse(text)
    )


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


# --- Chinese, Japanese and Korean ----------------------------------------------------------------
#
# Chinese and Japanese have no spaces between words. Their function words end a run of letters, so
# that no pair has a letter of them. Korean words have spaces, and particles and endings at the end.


def _longest_first(words: str) -> str:
    return "|".join(sorted(words.split(), key=len, reverse=True))


_CHINESE_FUNCTION_WORDS: Final = regex.compile(f"({_longest_first(_ENDINGS['chinese'])})")
_HIRAGANA_FUNCTION_WORDS: Final = regex.compile(f"({_longest_first(_ENDINGS['hiragana'])})")
# Particles, the copula, and the endings of verbs.
_KOREAN_ENDING: Final = regex.compile(
    rf"(?<=\p{{Hangul}})(?:{_longest_first(_ENDINGS['korean'])})$"
)


def cut_han(run: str, *, is_japanese: bool) -> Iterator[tuple[str, bool]]:
    """Yield each letter and each pair of Chinese letters, and whether it is a function word.

    Args:
        run: the letters.
        is_japanese: whether the text has kana too. Its function words are written with them.
    """
    for position, part in enumerate([run] if is_japanese else _CHINESE_FUNCTION_WORDS.split(run)):
        if position % 2:
            yield part, True
        else:
            yield from ((letter, False) for letter in [*part, *_pairs(part)])


def cut_hiragana(run: str) -> Iterator[tuple[str, bool]]:
    """Yield the words of a run of hiragana, and whether each is a function word."""
    for position, part in enumerate(_HIRAGANA_FUNCTION_WORDS.split(run)):
        if position % 2:
            yield part, True
        elif len(part) > 1:
            yield from ((word, False) for word in cut_word(part))


def cut_word(word: str) -> list[str]:
    """Return a whole word and, of a longer one, its pairs of letters."""
    return [word, *_pairs(word)] if len(word) > 2 else [word]


def without_ending(word: str) -> str:
    """Return a Korean word without its particle or ending."""
    return _KOREAN_ENDING.sub("", word)


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]
