"""The lexemes of a text, as the lexical index stores them, with their hashes and weights.

Words are stemmed here and not in Postgres, so that writing and searching agree for any version and
dictionary of the server, and a recall needs no round trip for its words. Pure.
"""

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Final, NamedTuple, TypeVar

import numpy as np
import regex
from numpy.typing import NDArray

from memory.text.languages import (
    CACHED_WORDS,
    ENGLISH,
    FREQUENT_ENGLISH,
    HANGUL,
    IRREGULAR,
    LATIN,
    MONTHS,
    UNKNOWN,
    UNSPACED,
    Language,
    decompose,
    fold_word,
    language_of,
    latin_language,
)

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


def hashes(lexemes: Mapping[str, str]) -> dict[int, int]:
    """Return the hashes of `alternatives`."""
    return {lexeme_hash(lexeme): lexeme_hash(word) for lexeme, word in lexemes.items()}


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


# Pronouns, words of questions, particles, auxiliary verbs, conjunctions.
_CHINESE_FUNCTION_WORDS: Final = regex.compile(
    "("
    + _longest_first(
        """我们 你们 他们 她们 咱们 自己 我 你 您 他 她 它 这个 那个 这 那 什么时候 什么 怎么样
            怎么 怎样 多少 为什么 哪里 哪儿 哪个 哪位 哪种 哪天 哪 谁 几 的 了 吗 呢 吧 啊 呀
            着 个 是 在 和 跟 与 也 都 就 还 又 很 太 最 把 被 给 让 不 没有 没 要 能 可以 别
            因为 所以 如果 但是 但 已经 现在 时候"""
    )
    + ")"
)
_HIRAGANA_FUNCTION_WORDS: Final = regex.compile(
    "("
    + _longest_first(
        """です でした ます ました ません ましょう ください ている ていた てる てた する した して
            される された れる られる れた られた せる ない なかった なる なった なって ある あった
            いる いた たい たら なら だった って から まで より けど けれど のに ので だけ など
            さん ちゃん くん こと もの とき ため よう いつ どこ どれ どの どう だれ なに いくら
            いくつ この その あの ここ そこ これ それ あれ また もう まだ とても
            を に は が も と で や へ か ね よ な の た て だ し い"""
    )
    + ")"
)
# Particles, the copula, and the endings of verbs.
_KOREAN_ENDING: Final = regex.compile(
    r"(?<=\p{Hangul})(?:"
    + _longest_first(
        """은 는 이 가 을 를 에 에서 에게 한테 한테서 께 께서 으로 로 와 과 도 만 의 까지 부터
            이랑 랑 하고 이나 나 라고 이라고 처럼 보다 마다 들 들을 들이 들은 이에요 예요
            였죠 이었죠 인가요 인데 네요 해요 했어요 했나요 했죠 했는데 합니다 했습니다 하나요
            하세요 하는 하게 하다 해서 한 할 어요 아요 었어요 았어요 었나요 았나요 었죠 았죠
            나요 고 요 서 죠 지 던 은데 는데 었는데 았는데 습니다 입니다 기"""
    )
    + r")$"
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
