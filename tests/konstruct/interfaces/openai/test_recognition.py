"""A resent history is recognised: only new messages are stored."""

from datetime import timedelta

import pytest

from konstruct.interfaces.openai import conversation
from konstruct.interfaces.openai.conversation import is_retry
from memory.models import Message
from tenants.context import tenant_scope
from tests.konstruct.interfaces.openai.conftest import Chat

RETRY_HEADERS = {"X-Stainless-Retry-Count": "1"}


def accepted_texts(chat: Chat) -> list[str]:
    """Return the accepted messages in order."""
    return [message.content for message in chat.accepted]


def test_only_the_last_message_of_a_history_is_new(chat: Chat) -> None:
    first = chat.says("one")
    second = chat.says("one", first, "two")
    chat.says("one", first, "two", second, "three")
    assert accepted_texts(chat) == ["one", "two", "three"]


def test_same_place_in_a_history_gets_the_same_answer(chat: Chat) -> None:
    first = chat.says("one")
    second = chat.says("one", first, "two")
    assert chat.says("one", first, "two") == second
    assert accepted_texts(chat) == ["one", "two"]


def test_the_same_words_later_in_a_history_are_new(chat: Chat) -> None:
    history = ["yes"]
    for _ in range(3):
        history += [chat.says(*history), "yes"]
    assert accepted_texts(chat) == ["yes", "yes", "yes"]


def test_edited_message_is_new_and_the_original_is_kept(chat: Chat) -> None:
    first = chat.says("one")
    chat.says("one", first, "two")
    chat.says("one", first, "too")
    assert accepted_texts(chat) == ["one", "two", "too"]


def test_answers_of_other_assistants_are_not_remembered(chat: Chat) -> None:
    chat.says("I am Maria.", "Hello Maria.", "What is my name?")
    assert accepted_texts(chat) == ["What is my name?"]
    with tenant_scope(chat.program.tenant.id):
        assert not Message.objects.filter(content="Hello Maria.").exists()


def test_repeated_examples_are_not_stored_as_history(chat: Chat) -> None:
    answers = [chat.says("2 + 2?", "4", "3 + 3?") for _ in range(2)]
    assert answers == ["1. 3 + 3?!", "2. 3 + 3?!"]


def test_client_without_history_can_repeat_a_message(chat: Chat) -> None:
    assert [chat.says("Hello"), chat.says("Hello")] == ["1. Hello!", "2. Hello!"]


def test_retries_of_the_client_library_are_one_message(chat: Chat) -> None:
    answer = chat.says("Hello")
    chat.says("And now?")
    assert chat.says("Hello", headers=RETRY_HEADERS) == answer
    assert accepted_texts(chat) == ["Hello", "And now?"]


def test_repetition_of_a_lost_request_is_new(chat: Chat) -> None:
    chat.says("Hello", headers=RETRY_HEADERS)
    chat.says("Hello", user="paul", headers=RETRY_HEADERS)
    assert [message.user_id for message in chat.accepted] == ["maria", "paul"]


def test_a_repetition_long_after_is_new(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    chat.says("Hello")
    monkeypatch.setattr(conversation, "RETRIES_END_AFTER", timedelta(seconds=-1))
    assert chat.says("Hello", headers=RETRY_HEADERS) == "2. Hello!"


def test_an_idempotency_key_decides_alone(chat: Chat) -> None:
    first = chat.says("one", headers={"Idempotency-Key": "a"})
    again = chat.says("one", headers={"Idempotency-Key": "a", **RETRY_HEADERS})
    other = chat.says("one", headers={"Idempotency-Key": "b", **RETRY_HEADERS})
    assert (again, other) == (first, "2. one!")


def test_only_a_positive_retry_count_is_a_repetition() -> None:
    counts = ["", "0", "00", "1", "2", "x", "-1", "²"]
    assert [count for count in counts if is_retry(count)] == ["1", "2"]
