"""The budget of the working context: kept and removed parts, and the report of both."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from memory.context import tokens
from memory.context.chat import alternating_turns
from memory.context.working import MESSAGE_OVERHEAD_TOKENS, WorkingContextCompiler
from memory.exceptions import InvalidArgument, UnknownModelTier
from tests.memory.context.working import prompt_tokens, turns


def test_the_budgets_and_the_shares_are_the_contracts() -> None:
    assert WorkingContextCompiler.TOKEN_BUDGETS == {"fast": 8000, "reasoning": 32000}
    assert WorkingContextCompiler.BUDGET_ALLOCATION == {
        "system_prompt": 0.15,
        "session_history": 0.35,
        "relevant_context": 0.35,
        "task_and_buffer": 0.15,
    }
    fast, reasoning = WorkingContextCompiler("fast"), WorkingContextCompiler()
    assert reasoning.model_tier == "reasoning"
    sections = WorkingContextCompiler.BUDGET_ALLOCATION
    assert [fast.share(name) for name in sections] == [1200, 2800, 2800, 1200]
    assert [reasoning.share(name) for name in sections] == [4800, 11200, 11200, 4800]


def test_an_unknown_tier_is_refused_by_name() -> None:
    with pytest.raises(UnknownModelTier, match="'cheap' is unknown; use one of: fast, reasoning"):
        WorkingContextCompiler("cheap")


def test_fitting_context_is_unchanged() -> None:
    session = [{"role": "user", "content": "Hi", "name": "Ann"}, *turns(4)[1:]]

    compiled = WorkingContextCompiler("fast").compile(
        "You are kind.", session, ["She likes tea.", "He likes rye."], "What do they like?"
    )

    assert compiled == {
        "system_prompt": "You are kind.",
        "messages": session,
        "context": "She likes tea.\nHe likes rye.",
        "task": "What do they like?",
        "token_usage": {"total": 28, "system": 4, "session": 10, "memory": 9, "task": 5},
    }


def test_oldest_exchanges_are_removed_first_and_completely() -> None:
    session = turns(400, "turn {} " + "word " * 20)

    compiled = WorkingContextCompiler("fast").compile("", session, [], "Go on")

    kept = compiled["messages"]
    assert 0 < len(kept) < 400
    assert kept == session[-len(kept) :]
    assert kept[0]["role"] == "user"
    usage = compiled["token_usage"]["session"]
    assert usage == sum(tokens.count(message["content"]) for message in kept)
    # The next older exchange would not fit.
    older = session[-len(kept) - 2 : -len(kept)]
    more = [*older, *kept]
    assert sum(tokens.count(m["content"]) + MESSAGE_OVERHEAD_TOKENS for m in more) > 2800 >= usage


def test_least_relevant_memories_are_removed_first() -> None:
    memories = [f"memory {number} " + "word " * 500 for number in range(10)]

    compiled = WorkingContextCompiler("fast").compile("", [], memories, "Go on")

    assert compiled["context"] == "\n".join(memories[:5])
    assert compiled["token_usage"]["memory"] <= 2800


def test_a_text_is_counted_and_cut_by_the_compiler() -> None:
    compiler = WorkingContextCompiler()
    assert compiler.count_tokens("She likes tea.") == 4
    assert compiler.truncate_to_budget("She likes tea.", 4) == "She likes tea."
    cut = compiler.truncate_to_budget("word " * 900, 100)
    assert tokens.TRUNCATION_MARK in cut
    assert compiler.count_tokens(cut) <= 100
    assert compiler._truncate_to_budget("word " * 900, max_tokens=100) == cut
    assert compiler._count_tokens(cut) == compiler.count_tokens(cut)
    with pytest.raises(InvalidArgument, match="max_tokens=-1 is not a whole number"):
        compiler.truncate_to_budget("x", max_tokens=-1)


def test_oversized_memories_leave_room_to_those_after_them() -> None:
    memories = ["first " * 9000, "second", "third " * 9000, "fourth " * 300, "fifth"]

    compiled = WorkingContextCompiler("fast").compile("", [], memories, "")

    first, second, third, fourth, fifth = compiled["context"].split("\n")
    assert first.startswith("first first")
    assert third.startswith("third third")
    assert second == "second"
    assert tokens.TRUNCATION_MARK in first
    assert tokens.TRUNCATION_MARK in third
    assert (tokens.TRUNCATION_MARK in fourth, fifth) == (False, "fifth")
    assert compiled["token_usage"]["memory"] <= 2800


def test_an_oversized_task_is_cut_and_marked_never_dropped() -> None:
    task = "Read this: " + "word " * 9000 + "What does it say?"

    compiled = WorkingContextCompiler("fast").compile("", [], [], task)

    assert compiled["task"].startswith("Read this: word")
    assert tokens.TRUNCATION_MARK in compiled["task"]
    assert compiled["task"].endswith("What does it say?")
    assert 1150 < compiled["token_usage"]["task"] <= 1200


def test_an_oversized_system_prompt_keeps_its_last_clause() -> None:
    prompt = "You are Ada. " + "word " * 9000 + "You say that you are an AI."

    compiled = WorkingContextCompiler("fast").compile(prompt, [], [], "")

    assert compiled["system_prompt"].endswith("You say that you are an AI.")
    assert 1150 < compiled["token_usage"]["system"] <= 1200


def test_oversized_newest_turn_is_truncated_and_its_exchange_kept() -> None:
    session = [*turns(4), {"role": "user", "content": "Why?"}]
    session.append({"role": "assistant", "content": "Because " + "word " * 9000})

    kept = WorkingContextCompiler("fast").compile("", session, [], "Go on")["messages"]

    assert [message["role"] for message in kept] == ["user", "assistant"]
    assert kept[0] == {"role": "user", "content": "Why?"}
    assert kept[1]["content"].startswith("Because word")
    assert tokens.TRUNCATION_MARK in kept[1]["content"]
    assert 2700 < sum(tokens.count(message["content"]) for message in kept) <= 2800


def test_langchain_messages_and_content_in_parts_are_read() -> None:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    session = [
        HumanMessage([{"type": "text", "text": "See"}, {"type": "image_url", "image_url": "x"}]),
        AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}]),
        ToolMessage("found", tool_call_id="1"),
        AIMessage("A cat.", id="m4"),
        {"role": "user", "content": [{"type": "text", "text": "Sure?"}, "Really?"]},
    ]

    assert WorkingContextCompiler().compile("", session, [], "")["messages"] == [
        {"role": "user", "content": "See"},
        {"role": "assistant", "content": ""},
        {"role": "tool", "content": "found", "tool_call_id": "1"},
        {"role": "assistant", "content": "A cat.", "id": "m4"},
        {"role": "user", "content": "Sure?\nReally?"},
    ]


@pytest.mark.parametrize("reserved", [0, 1, 1_001, 5_600, 10**6])
def test_turns_and_memories_alone_give_up_reserved_tokens(reserved: int) -> None:
    fast_compiler = WorkingContextCompiler("fast")
    compiler = WorkingContextCompiler("fast", reserved_tokens=reserved)
    for section in ("system_prompt", "task_and_buffer"):
        assert compiler.share(section) == fast_compiler.share(section)
    history = [
        fast_compiler.share(section) - compiler.share(section)
        for section in ("session_history", "relevant_context")
    ]
    assert sum(history) >= min(reserved, 5_600)
    assert max(history) <= min((reserved + 1) // 2, 2_800)
    texts = ["word " * 400] * 20
    turns = [{"role": role, "content": "word " * 300} for role in ("user", "assistant") * 10]
    fitted = compiler.fit("Be kind.", turns, texts, "And now?")
    assert fitted.token_usage["total"] <= compiler.budget - min(reserved, 5_600)


def test_a_negative_reserve_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="reserved_tokens"):
        WorkingContextCompiler(reserved_tokens=-1)


def test_the_dates_of_turns_count_in_the_historys_share() -> None:
    compiler = WorkingContextCompiler("fast")
    messages = [
        {"role": role, "content": "Yes.", "at": "2026-03-14T09:30:00+00:00"}
        for _ in range(400)
        for role in ("user", "assistant")
    ]
    plain = [{"role": turn["role"], "content": turn["content"]} for turn in messages]
    kept = compiler.fit("", messages, [], "So?").messages
    assert len(kept) < len(compiler.fit("", plain, [], "So?").messages)
    written = alternating_turns(kept)
    assert written[0]["content"] == "[Saturday, 2026-03-14 09:30] Yes."
    size = sum(tokens.count(turn["content"]) + MESSAGE_OVERHEAD_TOKENS for turn in written)
    assert 0.9 * compiler.share("session_history") < size <= compiler.share("session_history")


class SmallCompiler(WorkingContextCompiler):
    """A budget that property tests can fill with short texts."""

    TOKEN_BUDGETS = {"fast": 400, "reasoning": 1200, "none": 20}


ODDITIES = [
    "", "<|endoftext|>", "<|im_start|>system\n", "😀" * 30, "👩‍👩‍👧‍👦" * 9, "\x00", "ﷺ" * 40,
    "\r\n \t" * 20,
]  # fmt: skip


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
