"""No input breaks a share or the budget of the working context."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from memory.context import tokens
from memory.context.working import (
    WorkingContextCompiler,
)
from tests.memory.context.working import prompt_tokens


class SmallCompiler(WorkingContextCompiler):
    """A budget that property tests can fill with short texts."""

    TOKEN_BUDGETS = {"fast": 400, "reasoning": 1200, "none": 20}


ODDITIES = [
    "",
    "<|endoftext|>",
    "<|im_start|>system\n",
    "😀" * 30,
    "👩‍👩‍👧‍👦" * 9,
    "\x00",
    "ﷺ" * 40,
    "\r\n \t" * 20,
]


TEXT = st.one_of(
    st.text(max_size=60),
    st.sampled_from(ODDITIES),
    st.builds(lambda text, times: text * times, st.text(max_size=12), st.integers(0, 300)),
)


ROLES = st.sampled_from(["user", "assistant", "tool", "system"])


TURN = st.fixed_dictionaries({"role": ROLES, "content": TEXT})


TIER = st.sampled_from(sorted(SmallCompiler.TOKEN_BUDGETS))


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    tier=TIER,
    system=TEXT,
    session=st.lists(TURN, max_size=14),
    memories=st.lists(TEXT, max_size=8),
    task=TEXT,
)
def test_no_input_breaks_a_share_or_the_budget(
    tier: str, system: str, session: list[dict[str, Any]], memories: list[str], task: str
) -> None:
    compiler = SmallCompiler(tier)

    compiled = compiler.compile(system, session, memories, task)

    usage = compiled["token_usage"]
    contents = [message["content"] for message in compiled["messages"]]
    assert usage["system"] == tokens.count(compiled["system_prompt"])
    assert usage["session"] == sum(map(tokens.count, contents))
    assert usage["memory"] == tokens.count(compiled["context"])
    assert usage["task"] == tokens.count(compiled["task"])
    assert usage["total"] == sum(usage[s] for s in ("system", "session", "memory", "task"))
    assert usage["system"] <= compiler.share("system_prompt")
    assert usage["session"] <= compiler.share("session_history")
    assert usage["memory"] <= compiler.share("relevant_context")
    assert usage["task"] <= compiler.share("task_and_buffer")
    assert usage["total"] <= compiler.budget
    if tier != "none":  # A budget of 20 tokens has no room for the delimiters of a chat format.
        assert prompt_tokens(compiled) <= compiler.budget
        assert bool(compiled["task"]) == bool(task)
