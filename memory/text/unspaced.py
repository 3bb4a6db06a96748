"""Words of Chinese, Japanese and Korean: pairs of letters, beside whole words. Pure.

Chinese and Japanese have no spaces between words. Their function words end a run of letters, so
that no pair has a letter of them. Korean words have spaces, and particles and endings at the end.
"""

from collections.abc import Iterator
from typing import Final

import regex


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
