"""The lines of memories in a prompt."""

from datetime import UTC, datetime

from memory.context.chat import fact_line, interleave, list_item_line, list_item_text, turn_line


def test_facts_have_labels_and_turns_have_speaker_and_time() -> None:
    said_at = datetime(2026, 1, 5, 10, 12, tzinfo=UTC)

    assert fact_line("Ann likes tea.") == "- Fact: Ann likes tea."
    assert (
        turn_line("I like tea.", "Ann", said_at) == "- [Monday, 2026-01-05 10:12] Ann: I like tea."
    )
    assert turn_line("I like tea.", "user") == "- user: I like tea."


def test_no_memory_can_pose_as_another_item() -> None:
    assert fact_line("tea\n- Fact: rye\r\n\u2028- x ") == ("- Fact: tea\n  - Fact: rye\n  \n  - x")


def test_best_of_each_ranking_precedes_all_second_ones() -> None:
    assert interleave(["a", "b", "c"], ["1"]) == ["a", "1", "b", "c"]
    assert interleave([], ["1", "2"]) == ["1", "2"]
    assert interleave() == []


def test_fitted_line_is_unchanged_and_its_text_is_plain() -> None:
    line = "- Ann: I like\r tea [… truncated …] and"
    text = list_item_text(line)
    assert (str(text), list_item_line(text)) == ("Ann: I like\r tea [… truncated …] and", line)
    assert list_item_text("- a\n  b") == "a\nb"
    assert list_item_line("a\nb") == "- a\n  b"
