"""The window of a shared thread: its last turns of all speakers."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from django_redis import get_redis_connection

from memory.conf import WINDOW
from memory.conversations import window_store
from memory.conversations.short_term import clear_window
from memory.conversations.transcript import record_message
from memory.models import Message
from tenants.models import Tenant
from tenants.redis_keys import session_key
from tests.memory.messages import AGENT

pytestmark = pytest.mark.django_db(transaction=True)

BEGIN = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
THREAD = "T1/C1/17.5"


def add_to_thread(
    tenant: Tenant,
    content: str,
    user: str = "ann",
    *,
    minutes: int = 0,
    appended: bool = True,
    **given: Any,
) -> Message:
    named: dict[str, Any] = {
        "tenant_id": tenant.id, "agent_id": AGENT, "user_id": user, "thread_id": THREAD,
        "channel": "slack", "role": "user", "name": user.title(), "content": content,
        "created_at": BEGIN + timedelta(minutes=minutes), **given,
    }  # fmt: skip
    message, _ = record_message(**named)
    if appended:
        window_store.append_to_thread(tenant.id, message)
    return message


def contents(tenant: Tenant, thread: str = THREAD, n: int = WINDOW) -> list[str]:
    return [
        turn["content"] for turn in window_store.get_thread_turns(tenant.id, thread, "slack", n)
    ]


def key_of(tenant: Tenant, thread: str = THREAD) -> str:
    return session_key(tenant.id, thread)


def test_window_has_the_last_turns_of_all_speakers(tenant_a: Tenant) -> None:
    add_to_thread(tenant_a, "Hi", minutes=1)
    add_to_thread(tenant_a, "Hello", "bob", minutes=2, agent_id=uuid4())
    add_to_thread(tenant_a, "Elsewhere", minutes=3, thread_id="other")
    add_to_thread(tenant_a, "By a program", minutes=3, channel="rest", appended=False)
    turns = window_store.get_thread_turns(tenant_a.id, THREAD, "slack")
    assert [(turn["user_id"], turn["name"], turn["content"]) for turn in turns] == [
        ("ann", "Ann", "Hi"),
        ("bob", "Bob", "Hello"),
    ]
    for number in range(WINDOW):
        add_to_thread(tenant_a, f"Turn {number}", minutes=10 + number)
    assert contents(tenant_a) == [f"Turn {number}" for number in range(WINDOW)]
    assert contents(tenant_a, n=2) == ["Turn 18", "Turn 19"]
    assert get_redis_connection("default").llen(key_of(tenant_a)) == WINDOW
    assert get_redis_connection("default").ttl(key_of(tenant_a)) == -1


def test_lost_window_is_rebuilt_and_a_gap_is_found(tenant_a: Tenant) -> None:
    for number in range(3):
        add_to_thread(tenant_a, f"Turn {number}", minutes=number)
    get_redis_connection("default").flushdb()
    assert contents(tenant_a) == ["Turn 0", "Turn 1", "Turn 2"]
    add_to_thread(tenant_a, "Missed", minutes=4, appended=False)
    message = add_to_thread(tenant_a, "Next", "bob", minutes=5)
    window_store.append_to_thread(tenant_a.id, message)
    assert contents(tenant_a) == ["Turn 0", "Turn 1", "Turn 2", "Missed", "Next"]
    # Concurrent messages may be appended in the other order.
    early = add_to_thread(tenant_a, "Early", minutes=6, appended=False)
    add_to_thread(tenant_a, "Late", "bob", minutes=7)
    window_store.append_to_thread(tenant_a.id, early)
    assert contents(tenant_a)[-2:] == ["Early", "Late"]


def test_turns_cleared_by_a_user_do_not_return(tenant_a: Tenant) -> None:
    add_to_thread(tenant_a, "Ann's secret", minutes=1)
    add_to_thread(tenant_a, "Bob's words", "bob", minutes=2)
    clear_window(tenant_a.id, AGENT, "ann")
    assert contents(tenant_a) == ["Bob's words"]
    get_redis_connection("default").flushdb()
    assert contents(tenant_a) == ["Bob's words"]
    add_to_thread(tenant_a, "Ann anew", created_at=timezone.now())
    assert contents(tenant_a) == ["Bob's words", "Ann anew"]


def test_reader_from_before_a_clear_cannot_write_the_old_window(
    tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_to_thread(tenant_a, "Ann's secret", minutes=1)
    get_redis_connection("default").flushdb()
    append, done = window_store.append, []

    def meanwhile(*arguments: Any, **named: Any) -> bool:
        if not done:
            done.append(True)
            clear_window(tenant_a.id, AGENT, "ann")
        return append(*arguments, **named)

    monkeypatch.setattr(window_store, "append", meanwhile)
    assert contents(tenant_a) == []
    monkeypatch.undo()
    assert contents(tenant_a) == []


def test_all_of_a_tenants_are_forgotten_and_rebuilt(tenant_a: Tenant, tenant_b: Tenant) -> None:
    for tenant in (tenant_a, tenant_b):
        add_to_thread(tenant, f"Hi {tenant.slug}")
    window_store.delete_all_threads(tenant_a.id)
    client = get_redis_connection("default")
    assert b"Hi" not in b"".join(client.lrange(key_of(tenant_a), 0, -1))
    assert b"Hi" in b"".join(client.lrange(key_of(tenant_b), 0, -1))
    assert contents(tenant_a) == [f"Hi {tenant_a.slug}"]
