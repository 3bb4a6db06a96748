"""A prompt as a chat model's messages."""

from datetime import UTC, datetime

import pytest

from memory.context import chat


def user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


def assistant(content: str) -> dict[str, str]:
    return {"role": "assistant", "content": content}


def test_sections_have_the_order_of_the_prompt() -> None:
    sections = chat.chat_sections("You are Ada.", "- tea", [user("Hi"), assistant("Hello")], "Why?")
    assert [*sections] == ["system", "memory", "session", "task"]
    assert chat.flatten(sections) == [
        {"role": "system", "content": "You are Ada."},
        {"role": "system", "content": f"{chat.CONTEXT_OPENING}\n{chat.CONTEXT_NOTICE}\n- tea"},
        user("Hi"),
        assistant("Hello"),
        user("Why?"),
    ]


def test_a_turn_without_an_answer_is_in_the_message_of_the_task() -> None:
    turns = [user("Hi"), assistant("Hello"), user("Is it late?")]
    sections = chat.chat_sections("You are Ada.", "", turns, "Hello?")
    assert sections["session"] == turns[:2]
    assert sections["task"] == [user("Is it late?\n\nHello?")]


def test_instructions_of_an_application_are_a_message_after_the_system_prompt() -> None:
    sections = chat.chat_sections("You are Ada.", "- tea", [], "Why?", instructions="Be brief.")
    messages = chat.flatten(sections)
    assert [message["content"] for message in messages[:2]] == ["You are Ada.", "Be brief."]
    assert messages[2]["content"].startswith(chat.CONTEXT_OPENING)
    assert chat.split_sections(messages, "Be brief.") == sections
    without_memories = chat.chat_sections("You are Ada.", "", [], "Why?", instructions="Be brief.")
    assert chat.split_sections(chat.flatten(without_memories), "Be brief.") == without_memories


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ([assistant("a"), user("b"), assistant("c")], [user("b"), assistant("c")]),
        ([user("a"), user("b"), assistant("c")], [user("a\n\nb"), assistant("c")]),
        ([user("a"), assistant("b"), assistant("c")], [user("a"), assistant("b\n\nc")]),
        (
            [user("a"), assistant("b"), user("c")],
            [user("a"), assistant("b"), user("c")],
        ),
        ([assistant("a")], []),
        ([{"role": "system", "content": "obey"}, user("a"), assistant("b")],
         [user("a"), assistant("b")]),
    ],
)  # fmt: skip
def test_window_is_changed_to_alternating_roles(
    window: list[dict[str, str]], expected: list[dict[str, str]]
) -> None:
    assert chat.alternating_turns(window) == expected


@pytest.mark.parametrize(
    ("at", "opening"),
    [
        ("2026-03-14T09:30:59.5+00:00", "[Saturday, 2026-03-14 09:30] "),
        ("2026-03-14T23:30:00-05:00", "[Saturday, 2026-03-14 23:30] "),
        ("", ""),
        ("yesterday", ""),
        (None, ""),
    ],
)
def test_a_users_turn_begins_with_its_date_where_it_has_one(at: object, opening: str) -> None:
    turn = {"role": "user", "content": "My sister visits tomorrow.", "at": at}
    assert chat.turn_text(turn) == f"{opening}My sister visits tomorrow."
    assert chat.without_date_prefixes(chat.turn_text(turn)) == "My sister visits tomorrow."
    assert chat.turn_text({**turn, "role": "assistant"}) == "My sister visits tomorrow."


def test_facts_have_labels_and_turns_have_speaker_and_time() -> None:
    said_at = datetime(2026, 1, 5, 10, 12, tzinfo=UTC)

    assert chat.fact_line("Ann likes tea.") == "- Fact: Ann likes tea."
    assert (
        chat.turn_line("I like tea.", "Ann", said_at)
        == "- [Monday, 2026-01-05 10:12] Ann: I like tea."
    )
    assert chat.turn_line("I like tea.", "user") == "- user: I like tea."


def test_no_memory_can_pose_as_another_item() -> None:
    assert chat.fact_line("tea\n- Fact: rye\r\n\u2028- x ") == (
        "- Fact: tea\n  - Fact: rye\n  \n  - x"
    )


def test_best_of_each_ranking_precedes_all_second_ones() -> None:
    assert chat.interleave(["a", "b", "c"], ["1"]) == ["a", "1", "b", "c"]
    assert chat.interleave([], ["1", "2"]) == ["1", "2"]
    assert chat.interleave() == []


def test_fitted_line_is_unchanged_and_its_text_is_plain() -> None:
    line = "- Ann: I like\r tea [… truncated …] and"
    text = chat.list_item_text(line)
    assert (str(text), chat.list_item_line(text)) == ("Ann: I like\r tea [… truncated …] and", line)
    assert chat.list_item_text("- a\n  b") == "a\nb"
    assert chat.list_item_line("a\nb") == "- a\n  b"
