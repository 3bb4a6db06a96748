"""A prompt as a chat model's messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.context.chat import (
    CONTEXT_NOTICE,
    CONTEXT_OPENING,
    NO_REPLY,
    alternating_turns,
    chat_sections,
    flatten,
    split_sections,
    turn_text,
    without_date_prefixes,
)


def user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


def assistant(content: str) -> dict[str, str]:
    return {"role": "assistant", "content": content}


def test_sections_have_the_order_of_the_prompt() -> None:
    sections = chat_sections("You are Ada.", "- tea", [user("Hi"), assistant("Hello")], "Why?")
    assert [*sections] == ["system", "memory", "session", "task"]
    assert flatten(sections) == [
        {"role": "system", "content": "You are Ada."},
        {"role": "system", "content": f"{CONTEXT_OPENING}\n{CONTEXT_NOTICE}\n- tea"},
        user("Hi"),
        assistant("Hello"),
        user("Why?"),
    ]


def test_instructions_of_an_application_are_a_message_after_the_system_prompt() -> None:
    sections = chat_sections("You are Ada.", "- tea", [], "Why?", instructions="Be brief.")
    messages = flatten(sections)
    assert [message["content"] for message in messages[:2]] == ["You are Ada.", "Be brief."]
    assert messages[2]["content"].startswith(CONTEXT_OPENING)
    assert split_sections(messages, "Be brief.") == sections
    without_memories = chat_sections("You are Ada.", "", [], "Why?", instructions="Be brief.")
    assert split_sections(flatten(without_memories), "Be brief.") == without_memories


def test_a_section_without_anything_has_no_message() -> None:
    assert chat_sections("", "", [], "Why?") == {
        "system": [],
        "memory": [],
        "session": [],
        "task": [user("Why?")],
    }


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ([assistant("a"), user("b"), assistant("c")], [user("b"), assistant("c")]),
        ([user("a"), user("b"), assistant("c")], [user("a\n\nb"), assistant("c")]),
        ([user("a"), assistant("b"), assistant("c")], [user("a"), assistant("b\n\nc")]),
        (
            [user("a"), assistant("b"), user("c")],
            [user("a"), assistant("b"), user("c"), assistant(NO_REPLY)],
        ),
        ([assistant("a")], []),
        ([{"role": "system", "content": "obey"}, user("a"), assistant("b")],
         [user("a"), assistant("b")]),
    ],
)  # fmt: skip
def test_window_is_changed_to_alternating_roles(
    window: list[dict[str, str]], expected: list[dict[str, str]]
) -> None:
    assert alternating_turns(window) == expected


@given(
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant"]), "content": st.text(max_size=5)}
        )
    )
)
def test_any_window_alternates_and_is_not_changed_itself(window: list[dict[str, str]]) -> None:
    before = [dict(turn) for turn in window]
    roles = [turn["role"] for turn in alternating_turns(window)]
    assert roles == ["user", "assistant"] * (len(roles) // 2)
    assert window == before


@pytest.mark.parametrize(
    ("at", "opening"),
    [
        ("2026-03-14T09:30:59.5+00:00", "[Saturday, 2026-03-14 09:30] "),
        ("2026-03-14T23:30:00-05:00", "[Sunday, 2026-03-15 04:30] "),
        ("2026-03-14T09:30:00", "[Saturday, 2026-03-14 09:30] "),
        ("", ""),
        ("yesterday", ""),
        (None, ""),
        (7, ""),
    ],
)
def test_a_users_turn_begins_with_its_date_where_it_has_one(at: object, opening: str) -> None:
    turn = {"role": "user", "content": "My sister visits tomorrow.", "at": at}
    assert turn_text(turn) == f"{opening}My sister visits tomorrow."
    assert without_date_prefixes(turn_text(turn)) == "My sister visits tomorrow."
    assert turn_text({**turn, "role": "assistant"}) == "My sister visits tomorrow."


def test_each_of_two_turns_in_a_row_keeps_its_date() -> None:
    turns = [
        {"role": "user", "content": "a", "at": "2026-03-14T09:30:00+00:00"},
        {"role": "user", "content": "b", "at": "2026-03-15T09:30:00+00:00"},
        {"role": "assistant", "content": "c", "at": "2026-03-15T09:31:00+00:00"},
    ]
    assert alternating_turns(turns) == [
        user("[Saturday, 2026-03-14 09:30] a\n\n[Sunday, 2026-03-15 09:30] b"),
        assistant("c"),
    ]
    assert turns[0]["content"] == "a"
