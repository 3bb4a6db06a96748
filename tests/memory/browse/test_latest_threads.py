"""The list of threads: complete, in order and in pages, also with many messages per thread."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from memory.browse import threads
from memory.browse.threads import ThreadPosition, latest_threads
from memory.models import Message
from tenants.context import tenant_scope
from tenants.models import Tenant

START = datetime(2026, 1, 1, tzinfo=UTC)
AGENTS = (uuid4(), uuid4())


@pytest.fixture
def add_exchange(tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Store messages of one thread, a minute apart."""
    monkeypatch.setattr(threads, "MAX_SCANNED_MESSAGES", 4)
    monkeypatch.setattr(threads, "MAX_SCANS", 3)
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


def all_pages(**narrowing: Any) -> list[tuple[UUID, str, str, str]]:
    """Return agent, user, thread and latest message of all threads, in pages of three."""
    found, before = [], None
    for _ in range(100):
        page = latest_threads(before=before, limit=3, **narrowing)
        assert len(page.threads) <= 3
        found += [
            (thread.agent_id, thread.user_id, thread.thread_id, thread.beginning)
            for thread in page.threads
        ]
        before = page.before
        if before is None:
            return found
    raise AssertionError(found)


def expected(**conditions: Any) -> list[tuple[UUID, str, str, str]]:
    """Return the expected list, from all messages."""
    latest: dict[Any, str] = {}
    for message in Message.objects.filter(**conditions).order_by("-created_at", "-number"):
        thread = (message.agent_id, message.user_id, message.thread_id)
        latest.setdefault(thread, message.content)
    return [(*thread, content) for thread, content in latest.items()]


@pytest.mark.parametrize("walked", [1, 4, 1000])
def test_pages_have_every_thread_once_and_the_latest_first(
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
        whole = START + timedelta(minutes=20)
        assert all_pages() == expected()
        assert len(expected()) == 9
        for narrowing, conditions in (
            ({"agent_ids": AGENTS[:1]}, {"agent_id": AGENTS[0]}),
            (
                {"agent_ids": AGENTS, "user_ids": ["maria", "M1"]},
                {"user_id__in": ["maria", "M1"]},
            ),
            ({"until": whole}, {"created_at__lt": whole}),
            ({"since": whole}, {"created_at__gte": whole}),
            (
                {"agent_ids": AGENTS[1:], "user_ids": ["noa"], "since": whole},
                {"agent_id": AGENTS[1], "user_id": "noa", "created_at__gte": whole},
            ),
            ({"agent_ids": AGENTS, "user_ids": ["nobody"]}, {"user_id": "nobody"}),
        ):
            assert all_pages(**narrowing) == expected(**conditions), narrowing


def test_an_imported_thread_is_listed_at_the_time_of_its_latest_message(
    tenant_a: Tenant, add_exchange: Callable[..., None]
) -> None:
    with tenant_scope(tenant_a.id):
        add_exchange("today")
        add_exchange("yesterday")
        old = START - timedelta(days=300)
        imported = Message(
            agent_id=AGENTS[0],
            user_id="maria",
            thread_id="from 2025",
            channel="import",
            role="user",
            content="Long ago",
            created_at=old,
        )
        imported.save(force_insert=True)
        page = latest_threads(limit=2)
        assert [thread.thread_id for thread in page.threads] == ["yesterday", "today"]
        rest = latest_threads(before=page.before, limit=2)
        assert [thread.thread_id for thread in rest.threads] == ["from 2025"]
        assert latest_threads(before=ThreadPosition(old, 0)).threads == []
