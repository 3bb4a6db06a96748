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
    flattened,
)


def user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


def assistant(content: str) -> dict[str, str]:
    return {"role": "assistant", "content": content}


def test_the_sections_stand_in_the_order_of_the_prompt() -> None:
    sections = chat_sections("You are Ada.", "- tea", [user("Hi"), assistant("Hello")], "Why?")
    assert [*sections] == ["system", "memory", "session", "task"]
    assert flattened(sections) == [
        {"role": "system", "content": "You are Ada."},
        {"role": "system", "content": f"{CONTEXT_OPENING}\n{CONTEXT_NOTICE}\n- tea"},
        user("Hi"),
        assistant("Hello"),
        user("Why?"),
    ]


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
def test_an_odd_window_is_made_to_alternate(
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
