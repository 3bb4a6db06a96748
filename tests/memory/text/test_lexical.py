"""The words of texts: folded, stemmed, weighed, numbered."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, strategies as st

from memory.text import lexical
from memory.text.sentences import count_words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Don't PANIC, it's 3.5 km", ["don", "t", "panic", "it", "s", "3.5", "km"]),
        ("Café naïve Über ＡＢＣ", ["cafe", "naive", "uber", "abc"]),
        ("我喜欢苹果 ok", ["我", "喜", "欢", "苹", "果", "喜欢", "欢苹", "苹果", "ok"]),
        ("hello世界", ["hello", "世", "界", "世界"]),
        ("हिन्दी में हिंदी", ["हिंदी", "में", "हिंदी"]),
        ("１２ ١٢ १२", ["12", "12", "12"]),
        ("user_id snake-case", ["user", "id", "snake", "case"]),
        ("😀🎉 …", []),
        ("\x00a\x00b", ["a", "b"]),
        ("", []),
    ],
)
def test_words_of_any_script(text: str, found: list[str]) -> None:
    assert lexical.words(text) == found


def test_a_word_is_no_longer_than_an_index_likes() -> None:
    assert lexical.words("x" * 1000) == ["x" * 64]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("went", "go"),
        ("bought", "buying"),
        ("children", "child"),
        ("stories", "story"),
        ("mom", "mother"),
    ],
)
def test_forms_of_a_word_are_one_lexeme(one: str, other: str) -> None:
    assert lexical.lexemes(one) == lexical.lexemes(other)


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_text_is_tokenized_as_any_other(text: str) -> None:
    """The code has a faster path for ASCII, which one other letter disables."""
    assert lexical.words(f"{text} é") == [*lexical.words(text), "e"]
    assert count_words(f"{text} é") == count_words(text) + 1


def test_stop_words_are_left_out() -> None:
    assert lexical.lexemes("What did you do with it?") == []


def test_date_is_indexed_as_words_in_its_time_zone() -> None:
    moment = datetime(2023, 5, 8, 1, tzinfo=timezone(timedelta(hours=5)))
    assert lexical.date_lexemes(moment) == ["8", "may", "2023"]
    assert lexical.date_lexemes(datetime(2024, 12, 31, tzinfo=UTC)) == [
        "31",
        *lexical.lexemes("December"),
        "2024",
    ]


def test_weights_are_bm25f() -> None:
    # tf * (1 + k1) / (tf + k1 * (1 - b + b * length / 32))
    damping = 0.6 * (0.7 + 0.3 * 3 / 32)
    assert lexical.term_weights(["a", "a", "b"]) == pytest.approx(
        {"a": 2 * 1.6 / (2 + damping), "b": 1.6 / (1 + damping)}
    )


@given(st.integers(1, 3000), st.integers(0, 3000))
def test_term_weight_encodes_the_term_frequency(frequency: int, others: int) -> None:
    """As Postgres stores the weight: as a real."""
    length = float(frequency + others)
    weight = float(np.float32(lexical.bm25_weight(float(frequency), length)))
    assert round(lexical.frequency_of(weight, length)) == frequency


def test_hashes_never_change() -> None:
    # Postings are never rewritten, so a new version must find the old ones.
    assert lexical.lexeme_hash("lisbon") == -8655665195710493578
    assert -(2**63) <= lexical.lexeme_hash("\ud800") < 2**63


def test_combining_marks_are_removed_only_from_latin_letters_within_a_limit() -> None:
    assert lexical.words("e\u0301\u0327te\u0301 и\u0306") == ["ete", "\u0439"]
    # Runs longer than in any script are cut off before they are sorted.
    assert lexical.words("и" + "\u0316\u0306" * 40) == ["\u0439" + "\u0316" * 15 + "\u0306" * 14]
