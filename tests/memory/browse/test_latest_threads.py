"""The list of threads: complete and in order, also with many messages per thread."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from memory.browse import threads
from memory.browse.threads import last_of_threads
from memory.models import Message
from tenants.context import tenant_scope
from tenants.models import Tenant

START = datetime(2026, 1, 1, tzinfo=UTC)
AGENTS = (uuid4(), uuid4())


@pytest.fixture
def add_exchange(tenant_a: Tenant) -> Callable[..., None]:
    """Store messages of one thread, a minute apart."""
    minute = 0

    def store(thread_id: str, *, number: int = 1, user_id: str = "maria", agent: int = 0) -> None:
        nonlocal minute
        for _ in range(number):
            minute += 1
            Message.objects.create(
                agent_id=AGENTS[agent],
                user_id=user_id,
                thread_id=thread_id,
                channel="rest",
                role="user",
                content=f"{thread_id} at {minute}",
                created_at=START + timedelta(minutes=minute),
            )

    with tenant_scope(tenant_a.id):
        return store


def listed(**narrowing: Any) -> list[tuple[UUID, str, str, str]]:
    """Return agent, user, thread and latest message of all threads."""
    rows = last_of_threads(Message.objects.all(), **narrowing).order_by("-created_at", "-number")
    return list(rows.values_list("agent_id", "user_id", "thread_id", "content"))


def expected(**conditions: Any) -> list[tuple[UUID, str, str, str]]:
    """Return the expected list, from all messages."""
    latest: dict[Any, str] = {}
    for message in Message.objects.filter(**conditions).order_by("-created_at", "-number"):
        thread = (message.agent_id, message.user_id, message.thread_id)
        latest.setdefault(thread, message.content)
    return [(*thread, content) for thread, content in latest.items()]


@pytest.mark.parametrize("walked", [1, 4, 1000])
def test_every_thread_is_listed_once_and_the_latest_first(
    tenant_a: Tenant,
    add_exchange: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    walked: int,
) -> None:
    monkeypatch.setattr(threads, "MAX_WALKED_THREADS", walked)
    with tenant_scope(tenant_a.id):
        for number in range(7):
            add_exchange(f"t{number}", user_id=("maria", "noa", "M1")[number % 3], agent=number % 2)
        add_exchange("long", number=30)
        add_exchange("t0")
        add_exchange("long", number=9, user_id="noa", agent=1)
        assert listed() == expected()
        assert len(expected()) == 9
        for users in (["maria", "M1"], ["noa"], ["nobody"]):
            found = listed(agent_ids=AGENTS, user_ids=users)
            assert found == expected(user_id__in=users)
        found = listed(agent_ids=AGENTS[1:], user_ids=["noa"])
        assert found == expected(agent_id=AGENTS[1], user_id="noa")
