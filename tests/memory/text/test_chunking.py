"""Splitting messages into sentences: none lost, none too long, in any script."""

import pytest

from memory.embedding.embedder import get_embedder
from memory.text.sentences import count_words, cut_pieces, split_sentences


def characters(text: str) -> int:
    return len(text)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It rained. We stayed in!  Did you?", ["It rained.", "We stayed in!", "Did you?"]),
        ("Dr. Wu met J. R. Tolkien. It was late.", ["Dr. Wu met J. R. Tolkien.", "It was late."]),
        (
            "Fruit, e.g. pears, cost 3.5 euros at a.com.",
            ["Fruit, e.g. pears, cost 3.5 euros at a.com."],
        ),
        ("It was I. Then we left.", ["It was I.", "Then we left."]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("Wait... what?! No.", ["Wait...", "what?!", "No."]),
        ("one line\nanother line\r\n\n- a third", ["one line", "another line", "- a third"]),
        ("我今天去了北京。你呢？「好！」真的", ["我今天去了北京。", "你呢？", "「好！」", "真的"]),
        ("यह पहला है। यह दूसरा है।", ["यह पहला है।", "यह दूसरा है।"]),
        ("no marks at all here", ["no marks at all here"]),
        ("  \n ", []),
        ("", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't know", 3),
        ("我今天去了北京", 4),
        ("สวัสดีครับ", 5),
        ("😀 !", 0),
        ("naïve café-bar", 2),
    ],
)
def test_words_are_counted_in_any_script(text: str, words: int) -> None:
    assert count_words(text) == words


SHARED = "I like tea. It is warm. We sat in the garden until it rained. It was such fun."


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (
            "Sure! I moved to Lisbon with my brother in May. Me too."
            " The flat is small but it has a view of the river.",
            [
                "Ann: I moved to Lisbon with my brother in May.",
                "Ann: The flat is small but it has a view of the river.",
            ],
        ),
        (SHARED, [f"Ann: {SHARED}"]),
        (
            "I like tea very much. It is warm and cheap."
            " Coffee is something for my much older brother.",
            [
                "Ann: I like tea very much. It is warm and cheap.",
                "Ann: Coffee is something for my much older brother.",
            ],
        ),
        ("Sure! Me too.", ["Ann: Sure! Me too."]),
        (" \x00\n", []),
    ],
)
def test_pieces_carry_their_subject_and_short_sentences_share_one(
    text: str, pieces: list[str]
) -> None:
    assert cut_pieces(text, "Ann", count_tokens=characters, max_tokens=256) == pieces


def test_a_repeated_sentence_is_one_piece() -> None:
    text = "I like green tea with milk very much. I like green tea with milk very much."
    assert len(cut_pieces(text, "Ann", count_tokens=characters, max_tokens=256)) == 1


@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"word{number}" for number in range(3000)),
        "".join(chr(0x4E00 + number) for number in range(3000)),
    ],
    ids=["words", "no spaces"],
)
def test_long_message_is_covered_by_pieces_within_the_model_limit(text: str) -> None:
    embedder = get_embedder()
    pieces = cut_pieces(
        text, "Ann", count_tokens=embedder.count_tokens, max_tokens=embedder.max_tokens
    )
    assert all(embedder.count_tokens(piece) <= embedder.max_tokens for piece in pieces)
    assert len(pieces) > 1
    covered = "".join(piece.removeprefix("Ann: ") for piece in pieces)
    assert covered.replace(" ", "") == text.replace(" ", "")


def test_a_long_name_leaves_room_for_the_text() -> None:
    pieces = cut_pieces("I moved to Lisbon.", "A" * 1000, count_tokens=characters, max_tokens=128)
    assert "".join(piece.split(": ")[1] for piece in pieces).replace(" ", "") == "ImovedtoLisbon."
