"""Segments: any text is read as it was written, and texts of a prompt consist of references."""

import itertools
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

from hypothesis import example, given, settings, strategies as st

from memory.context import tokens
from memory.context.chat import date_prefix, fact_line, turn_line, turn_text, with_speaker
from memory.context.recall_events import _USUAL
from memory.context.segments import SourceText, Splitter, join, split_own

AT = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
WORDS = [
    "beagle", "Rex,", "(Rome)", "naïve", "文字列", "🦄", "a", "I", "10:30", '"yes"', "e.g.", "…",
]  # fmt: skip


def numbered(lines: list[list[str]]) -> str:
    """Return lines of words in which no word occurs twice."""
    count = itertools.count()
    return "\n".join(" ".join(f"{word}{next(count)}" for word in line) for line in lines)


LINE = st.lists(st.sampled_from(WORDS), min_size=1, max_size=40)
CONTENT = st.lists(LINE, min_size=1, max_size=4).map(numbered)
LONG = st.builds(lambda text, times: f"{text} " * times, CONTENT, st.integers(1, 60))
SHORT = SourceText("ok", name="Otto")


def split(text: str, sources: list[SourceText]) -> tuple[list[Any], list[str]]:
    unmatched: list[str] = []
    return Splitter(sources).split(text, unmatched), unmatched


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(CONTENT, LONG, st.text(max_size=20)), max_size=5), st.data())
def test_any_text_is_joined_as_it_was(contents: list[str], data: st.DataObject) -> None:
    sources = [SourceText(content, name="Otto", time=date_prefix(AT)) for content in contents]
    pieces = st.one_of(st.text(max_size=20), st.sampled_from([*contents, "Otto: ", "[x] ", "- "]))
    text = "".join(data.draw(st.lists(pieces, max_size=6)))
    segments, unmatched = split(text, sources)
    assert join(segments, sources, unmatched) == text


# The same texts in each run: a few more of a text that is cut in its middle do not match.
@settings(max_examples=200, deadline=None, derandomize=True)
@given(CONTENT, st.integers(20, 120))
@example("one\n\n  two\nthree", 120)
@example("beagle0 beagle1 beagle2 beagle3 beagle4 beagle5\nbeagle6", 21)
@example("What is the beagle called? " + "word " * 200 + "Tell me its name.", 40)
@example(f"{' '.join(f'beagle{n}' for n in range(21))} 10:3021\nbeagle22 beagle23 a24 10:3026", 83)
def test_texts_of_a_prompt_consist_of_references(content: str, limit: int) -> None:
    source = SourceText(content, name="Otto", time=date_prefix(AT))
    turn = {"role": "user", "content": content, "at": AT.isoformat()}
    for text in (
        turn_text(turn),
        turn_line(content, "Otto", AT),
        with_speaker("Otto", content),
        fact_line(content),
        tokens.cut(content, limit),
    ):
        segments, unmatched = split(text, [SHORT, source])
        assert unmatched == []
        assert join(segments, [SHORT, source], unmatched) == text
        # Nothing of the content is left when it is erased.
        words = {word for word in content.split() if len(word) > 3 and word.isalpha()}
        assert words.isdisjoint(join(segments, [SHORT, None], unmatched).split())


def test_a_short_source_is_no_part_of_a_word_or_of_another_source() -> None:
    book = SourceText("Look at the book, ok?")
    text = "ok\n\nLook at the book, ok?\n\nokay"
    segments, unmatched = split(text, [SHORT, book])
    assert (segments, unmatched) == ([0, "\n\n", 1, "\n\n", [0]], ["okay"])
    assert join(segments, [None, book], None) == ("[erased]\n\nLook at the book, ok?\n\n[erased]")


def test_of_equal_texts_the_one_after_the_name_is_taken() -> None:
    sources = [SHORT, SourceText("ok", name="Maria"), SourceText("ok", name="Otto")]
    segments, unmatched = split("Otto: ok\n\nMaria: ok\n\nOtto: ok", sources)
    assert [segment for segment in segments if not isinstance(segment, str)] == [
        -1, 0, -4, 1, -7, 2,
    ]  # fmt: skip
    assert unmatched == []


def test_only_texts_of_the_agent_are_literals_of_its_system_prompt() -> None:
    own = ["You are Ada.", "Be kind.\nBe brief."]
    unmatched: list[str] = []
    text = "You are Ada.\n\nMaria likes tea.\n\nBe kind.\nBe brief."
    assert split_own(text, own, unmatched) == [
        "You are Ada.\n\n", [0], "\n\nBe kind.\nBe brief.",
    ]  # fmt: skip
    assert unmatched == ["Maria likes tea."]


def test_many_equal_lines_take_no_quadratic_time() -> None:
    lines = SourceText("{}();\n" * 20_000)
    text = with_speaker("Otto", lines.content) + " …" * 2_000
    segments, unmatched = split(text, [lines] * 20)
    assert join(segments, [lines] * 20, unmatched) == text


def test_the_usual_event_that_stored_events_refer_to_does_not_change() -> None:
    assert crc32(_USUAL) == 3695066397
