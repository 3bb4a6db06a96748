"""The built-in responder: it quotes memories, and never invents text."""

import pytest

from konstruct.llm import responder
from konstruct.orchestrator.builder import build_messages_with_memory
from tests.konstruct.orchestrator.test_builder import Ada, assistant, user


def ask(question: str, *, window: list[dict[str, str]] = [], recalled: list[str] = []) -> str:  # noqa: B006
    return responder.respond(build_messages_with_memory(Ada(), question, window, recalled))


def test_built_in_responder_reports_that_it_has_no_memories() -> None:
    assert ask("Where did I move?") == responder.NOTHING
    assert "not a language model" in responder.NOTHING


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Remember: tea at five", "tea at five"),
        ("please, remember this:\n tea   at five", "tea at five"),
        ("Remember, that tea is at five", "tea is at five"),
        ("remember this that tea", "tea"),
        ("remember  that\n tea", "tea"),
        ("rememberthat tea", None),
        ("remember that", None),
        ("Do you remember that tea", None),
        ("remember that tea?", None),
        ("remember" + " " * 32_000 + ":", None),
    ],
)
def test_request_to_remember_is_confirmed(text: str, fact: str | None) -> None:
    requested = responder.requested_tool_call(
        [user(text)], [{"function": {"name": responder.REMEMBER}}]
    )
    assert (requested and requested.arguments) == (fact and {"fact": fact})


def test_a_statement_is_noted_and_a_question_inside_it_is_answered() -> None:
    assert ask("I moved to Porto.") == responder.NOTED
    assert ask("I moved to Porto. Where did I live before?") == responder.NOTHING


def test_built_in_responder_quotes_the_best_recalled_lines_in_order() -> None:
    lines = [f"Maria: fact {number}" for number in range(5)]
    quoted = "- Maria: fact 0\n- Maria: fact 1\n- Maria: fact 2"
    assert ask("Which facts?", recalled=lines) == (
        f"{responder.FOUND}\n{quoted}\n{responder.DISCLAIMER}"
    )


def test_built_in_responder_does_not_quote_its_own_answers() -> None:
    own = f"Ada: {responder.FOUND}\n- Maria: I moved to Porto.\n{responder.DISCLAIMER}"
    answer = ask("Where did I move?", recalled=[own, "Maria: I moved to Porto."])
    assert answer == f"{responder.FOUND}\n- Maria: I moved to Porto.\n{responder.DISCLAIMER}"


def test_built_in_responder_finds_the_last_message_in_the_window() -> None:
    window = [
        user("My dog is called Rex."),
        assistant(responder.NOTHING),
        user("The weather is fine."),
        assistant(responder.NOTHING),
    ]
    answer = ask("What is my dog called?", window=window)
    assert answer == f"{responder.FOUND}\n- My dog is called Rex.\n{responder.DISCLAIMER}"


def test_built_in_responder_does_not_answer_with_an_earlier_question() -> None:
    for question in ("What is my dog called?", "犬の名前は何ですか？"):
        window = [user(question), assistant(responder.NOTHING)]
        assert ask(question, window=window) == responder.NOTHING


def test_stop_words_alone_find_nothing() -> None:
    window = [user("I was there with them."), assistant(responder.NOTHING)]
    assert ask("Where was I?", window=window) == responder.NOTHING


FACT = "Fact: Deal closes in May."


@pytest.mark.parametrize(
    "text",
    [
        "hello", "Hello, how are you?", "Thanks a lot.", "bye", "Thanks, and see you tomorrow!",
        "Gru\u0308\u00df Gott", "merci beaucoup", "¡Hasta mañana!",
    ],
)  # fmt: skip
def test_small_talk_is_answered_without_quotes(text: str) -> None:
    assert ask(text, recalled=[FACT, f"user: {text}"]) == responder.SMALL_TALK_ANSWER


@pytest.mark.parametrize(
    "text",
    [
        "Hi, what am I allergic to?", "Hello, my dog is called Rex.", "Hello, My Dog Is Rex",
        "Hi Anna", "hello walnuts", "You too", "", "!", "hi " * 40,
    ],
)  # fmt: skip
def test_message_with_more_than_a_greeting_is_not_small_talk(text: str) -> None:
    assert not responder.is_small_talk(text)
