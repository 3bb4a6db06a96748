"""Languages of the lexical index: frequent words, words of speakers and of time.

Words of a script of one language, such as Cyrillic, have its language. Of a Latin text the frequent
words decide, and English if no other language has more of them. Agents and users may have one.
"""

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final
from uuid import UUID

import regex

from memory.text import english
from memory.text.folding import CACHED_WORDS, fold

# A language is recognized by frequent words of at least this many letters together: not by "Los"
# in "Los Angeles".
MIN_LETTERS: Final = 4


def _words(text: str) -> frozenset[str]:
    return frozenset(fold(text).split())


@dataclass(frozen=True, eq=False)
class Language:
    """A language, with folded words."""

    code: str
    stemmer: str
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


def _language(
    code: str,
    *,
    stemmer: str = "",
    letters: str = "",
    drops_subject: bool = False,
    capitalizes_nouns: bool = False,
    joins_words: bool = False,
    months: str = "",
    **words: str,
) -> Language:
    numbers = {
        name: number
        for number, names in enumerate(months.split())
        for name in _words(names.replace("/", " "))
    }
    folded = {name: _words(text) for name, text in words.items()}
    stop_words = frozenset[str]().union(
        folded["stop_words"], *(folded[name] for name in ("user", "agent", "when"))
    )
    return Language(
        code,
        stemmer,
        **{**folded, "stop_words": stop_words, "time": folded["time"] | numbers.keys()},
        months=numbers,
        drops_subject=drops_subject,
        capitalizes_nouns=capitalizes_nouns,
        joins_words=joins_words,
        letters=frozenset(letters),
    )


ENGLISH: Final = Language(
    "en", "english", english.STOP_WORDS, english.I_WORDS, english.YOU_WORDS, time=english.TIME_WORDS
)
_WORDS: Final = tomllib.loads(Path(__file__).with_name("languages.toml").read_text("utf-8"))
_LISTED: Final = {code: _language(code, **words) for code, words in _WORDS.items()}
LATIN: Final = (ENGLISH, *(_LISTED[code] for code, words in _WORDS.items() if "letters" in words))
LATIN_BY_CODE: Final = {language.code: language for language in LATIN}
FREQUENT_ENGLISH: Final = english.STOP_WORDS | english.QUESTION_WORDS
# The languages in which a word is frequent.
_FREQUENT_IN: Final[dict[str, list[Language]]] = {}
for _latin in LATIN:
    for _word in FREQUENT_ENGLISH if _latin is ENGLISH else _latin.stop_words:
        _FREQUENT_IN.setdefault(_word, []).append(_latin)
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
