"""A message gets its reply with any state of its cached window."""

from collections.abc import Callable
from typing import Any

import pytest
from django_redis import get_redis_connection

from konstruct.api.resources.memory import windows as endpoint
from memory.conversations import window_store
from memory.conversations.short_term import clear_window, get_recent_messages
from memory.models import Message, WindowClear
from tenants import transaction
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

pytestmark = pytest.mark.django_db(transaction=True)

SendMessage = Callable[..., Message]


@pytest.fixture(autouse=True)
def bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail instead of running forever."""
    calls, run = [], window_store._run

    def counted(*arguments: Any) -> int:
        calls.append(arguments)
        assert len(calls) < 100
        return run(*arguments)

    monkeypatch.setattr(window_store, "_run", counted)


def window(program: Program) -> list[str]:
    turns = get_recent_messages(program.tenant.id, program.agent.id, "maria")
    return [turn["content"] for turn in turns]


def answered(message: Message) -> bool:
    return Message.objects.filter(in_reply_to=message).exists()


def key_of(program: Program) -> str:
    return f"{program.tenant.id}:memory:short:{program.agent.id}:maria"


def test_after_a_clear_that_was_rolled_back(send_message: SendMessage, program: Program) -> None:
    send_message("Hello")
    with transaction.atomic():
        clear_window(program.tenant.id, program.agent.id, "maria")
        transaction.set_rollback(True)
    assert answered(send_message("Tea?"))
    assert window(program) == ["Hello", "Noted.", "Tea?", "Noted."]


def test_during_a_clear_that_is_rolled_back_later(
    send_message: SendMessage, program: Program
) -> None:
    send_message("Hello")
    with transaction.atomic():
        clear_window(program.tenant.id, program.agent.id, "maria")
        assert get_redis_connection("default").llen(key_of(program)) == 2
        transaction.set_rollback(True)
    assert window(program) == ["Hello", "Noted."]


def test_after_the_apis_clear_failed_at_its_end(
    send_message: SendMessage, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_message("Hello")

    def failing(*arguments: Any) -> None:
        clear_window(*arguments)
        raise ValueError("the transaction ends here")

    monkeypatch.setattr(endpoint, "clear_window", failing)
    query = f"?agent={program.agent.name}&user_id=maria"
    assert program.request("DELETE", f"/api/v1/windows/{query}").status_code == 500
    with tenant_scope(program.tenant.id):
        assert not WindowClear.objects.exists()
        assert answered(send_message("Tea?"))
        assert window(program) == ["Hello", "Noted.", "Tea?", "Noted."]


@pytest.mark.parametrize("left", [b'{"cleared":1000000000}', b'{"forgotten":"x"}'])
def test_window_with_a_mark_unknown_to_the_database_is_rebuilt(
    send_message: SendMessage, program: Program, left: bytes
) -> None:
    send_message("Hello")
    get_redis_connection("default").delete(key_of(program))
    get_redis_connection("default").rpush(key_of(program), left)
    assert answered(send_message("Tea?"))
    assert window(program) == ["Hello", "Noted.", "Tea?", "Noted."]


def test_window_is_cleared_after_a_kill_between_commit_and_cache(
    send_message: SendMessage, program: Program
) -> None:
    send_message("Hello")
    cache = get_redis_connection("default")
    before = cache.lrange(key_of(program), 0, -1)
    clear_window(program.tenant.id, program.agent.id, "maria")
    cache.delete(key_of(program))
    cache.rpush(key_of(program), *before)
    assert window(program) == []
    assert answered(send_message("Tea?"))
    assert window(program) == ["Tea?", "Noted."]
