"""Languages of the lexical index: frequent words, words of speakers and of time; folding.

Folding gives one spelling to texts that people write with other accents, letters, case or width.
Words of the index, names of people and their searches are folded in the same way.

Words of a script of one language, such as Cyrillic, have its language. Of a Latin text the frequent
words decide, and English if no other language has more of them. Agents and users may have one.
Pure.
"""

import tomllib
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import regex

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

# The stop words of Snowball's English list, which Postgres' `english` configuration uses too, with
# the endings after an apostrophe.
STOP_WORDS = word_set(
    """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves what which
    who whom this that these those am is are was were be been being have has had having do
    does did doing a an the and but if or because as until while of at by for with about
    against between into through during before after above below to from up down in out on
    off over under again further then once here there when where why how all any both each
    few more most other some such no nor not only own same so than too very s t can will
    just don should now d ll m re ve
    """
)

# Forms that the stemmer does not reduce to the stem of their base: went and go.
_IRREGULAR_FORMS = """
    go went gone|buy bought|bring brought|think thought|teach taught|catch caught
    seek sought|fight fought|sell sold|tell told|find found|hold held|keep kept|sleep slept
    feel felt|leave left|lose lost|meet met|feed fed|lead led|read read|make made|say said
    pay paid|lay laid|hear heard|build built|send sent|spend spent|lend lent|bend bent
    mean meant|learn learnt|dream dreamt|burn burnt|win won|stand stood
    understand understood|sit sat|get got gotten|give gave given|take took taken
    see saw seen|eat ate eaten|drink drank drunk|drive drove driven|ride rode ridden
    write wrote written|rise rose risen|speak spoke spoken|break broke broken
    choose chose chosen|wake woke woken|freeze froze frozen|steal stole stolen
    wear wore worn|tear tore torn|bear bore born|know knew known|grow grew grown
    throw threw thrown|fly flew flown|draw drew drawn|blow blew blown|show shown
    begin began begun|swim swam swum|sing sang sung|ring rang rung|run ran|come came
    become became|fall fell fallen|forget forgot forgotten|forgive forgave forgiven
    hide hid hidden|bite bit bitten|shake shook shaken|mistake mistook|undertake undertook
    overcome overcame|stick stuck|dig dug|hang hung|strike struck|swing swung|spin spun
    shoot shot|shine shone|light lit|slide slid|bleed bled|breed bred|deal dealt|kneel knelt
    lean leant|leap leapt|spell spelt|spill spilt|spoil spoilt|weep wept|sweep swept
    creep crept|sink sank sunk|shrink shrank shrunk|stink stank|spring sprang sprung
    lie lain|swear swore sworn|weave wove woven|sew sewn|bind bound|wind wound
    child children|man men|woman women|person people|foot feet|tooth teeth|mouse mice
    goose geese|wife wives|life lives|knife knives|leaf leaves|half halves|shelf shelves
    wolf wolves|self selves|good better best|bad worse worst|mom mum mother|dad father
"""
IRREGULAR = {
    form: group.split()[0]
    for line in _IRREGULAR_FORMS.strip().splitlines()
    for group in line.split("|")
    for form in group.split()[1:]
}

MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip

# A memory with one of these, or a year, can answer a question for a time.
TIME_WORDS = word_set(
    """
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    yesterday today tonight tomorrow ago last next since recently week weeks weekend month months
    year years day days night morning afternoon evening summer winter spring autumn fall
    """
)

# Pronouns of the user and of the agent in a conversation between the two.
I_WORDS = word_set("i me my mine myself we us our ours ourselves")
YOU_WORDS = word_set("you your yours yourself")

# A sentence with such a beginning and without a mark at its end is a question.
QUESTION_WORDS = word_set(
    """
    who whom whose what which when where why how do does did is are was were am has have had
    can could will would shall should may might must
    """
)


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


ENGLISH: Final = Language("en", "english", STOP_WORDS, I_WORDS, YOU_WORDS, time=TIME_WORDS)
_WORDS: Final = tomllib.loads(Path(__file__).with_name("languages.toml").read_text("utf-8"))
_LISTED: Final = {code: _language(code, **words) for code, words in _WORDS.items()}
LATIN: Final = (ENGLISH, *(_LISTED[code] for code, words in _WORDS.items() if "letters" in words))
LATIN_BY_CODE: Final = {language.code: language for language in LATIN}
FREQUENT_ENGLISH: Final = STOP_WORDS | QUESTION_WORDS
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
