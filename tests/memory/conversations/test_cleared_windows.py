"""Messages before a clear do not return to the window, in any order and at any time."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from django_redis import get_redis_connection

from konstruct.consistency import verify
from konstruct.privacy.archive.exporting import export_memory
from konstruct.privacy.archive.importing import import_memory
from memory.conversations.short_term import append_message, clear_window, get_recent_messages
from memory.conversations.transcript import ImportedTurn, import_turns, record_message
from memory.models import WindowClear
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.memory.messages import AGENT

pytestmark = pytest.mark.django_db(transaction=True)

USER = "ann"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
Do = Callable[[Tenant], None]


def imported(tenant: Tenant, text: str, at: datetime = LONG_AGO) -> None:
    turn = ImportedTurn(f"id of {text}", AGENT, USER, "old", "user", text, at)
    import_turns(tenant.id, [turn])


def record_turn(tenant: Tenant, text: str) -> None:
    """Record a message and its answer, as a program's graph does."""
    named: Any = {
        "tenant_id": tenant.id, "agent_id": AGENT, "user_id": USER, "thread_id": "t",
        "channel": "langgraph",
    }  # fmt: skip
    message, _ = record_message(**named, role="user", content=text)
    record_message(**named, role="assistant", content=f"re {text}", in_reply_to=message.id)


def clear(tenant: Tenant) -> None:
    clear_window(tenant.id, AGENT, USER)


def flush(tenant: Tenant) -> None:
    get_redis_connection("default").flushdb()


def look(tenant: Tenant) -> None:
    get_recent_messages(tenant.id, AGENT, USER)


def window(tenant: Tenant) -> list[str]:
    return [turn["content"] for turn in get_recent_messages(tenant.id, AGENT, USER)]


def old(text: str) -> Do:
    return lambda tenant: imported(tenant, text)


def new(text: str) -> Do:
    return lambda tenant: imported(tenant, text, timezone.now() + timedelta(seconds=1))


def talk(text: str) -> Do:
    return lambda tenant: record_turn(tenant, text)


ORDERS: dict[str, tuple[list[Do], list[str]]] = {
    "an old turn after a clear": ([talk("a"), clear, old("b")], []),
    "an old turn, the cache lost": ([talk("a"), clear, old("b"), flush], []),
    "an old turn before what is new": (
        [talk("a"), clear, talk("c"), old("b"), flush], ["c", "re c"]
    ),
    "an old turn after what is new": (
        [talk("a"), clear, old("b"), talk("c")], ["c", "re c"]
    ),
    "cleared with nothing said": ([clear, old("b"), flush], []),
    "an import, then a clear": ([old("b"), look, clear, flush], []),
    "two clears": ([talk("a"), clear, talk("b"), clear, old("c"), flush], []),
    "two clears in a row": ([talk("a"), clear, clear, old("c"), talk("d")], ["d", "re d"]),
    "a future turn that stood before": ([new("a"), clear, flush], []),
    "a new import after a clear": ([talk("a"), clear, new("b")], ["b"]),
    "a graph's turns after a clear": ([talk("a"), clear, talk("b")], ["b", "re b"]),
    "a graph's turns in a window that stands": (
        [talk("a"), look, talk("b")], ["a", "re a", "b", "re b"]
    ),
    "the old turn again": ([talk("a"), clear, old("b"), flush, look, old("b"), flush], []),
}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
def test_messages_before_a_clear_do_not_return(tenant_a: Tenant, order: str) -> None:
    """In the window, in `verify_memory`, in its repair, and in a rebuild."""
    steps, expected = ORDERS[order]
    for step in steps:
        step(tenant_a)
    with tenant_scope(tenant_a.id):
        assert verify(tenant_a.id, "tenant-a").findings == []
        assert sorted(window(tenant_a)) == sorted(expected)
        assert verify(tenant_a.id, "tenant-a", repair=True).findings == []
    flush(tenant_a)
    assert window(tenant_a)[-2:] == expected[-2:]
    assert sorted(window(tenant_a)) == sorted(expected)
    assert verify(tenant_a.id, "tenant-a").findings == []


def test_old_turn_is_removed_from_a_window_only_by_a_rebuild(tenant_a: Tenant) -> None:
    record_turn(tenant_a, "a")
    look(tenant_a)
    imported(tenant_a, "old")
    assert window(tenant_a) == ["a", "re a"]
    assert verify(tenant_a.id, "tenant-a").findings == []
    flush(tenant_a)
    assert window(tenant_a) == ["old", "a", "re a"]


def test_single_turn_is_kept_by_an_import_of_older_turns(tenant_a: Tenant) -> None:
    record_turn(tenant_a, "a")
    look(tenant_a)
    append_message(tenant_a.id, AGENT, USER, "user", "by itself")
    imported(tenant_a, "old")
    assert window(tenant_a) == ["a", "re a", "by itself"]


def test_an_archives_clear_never_undoes_a_later_one(
    tenant_a: Tenant, tenant_b: Tenant, tmp_path: Path
) -> None:
    record_turn(tenant_a, "a")
    clear(tenant_a)
    export_memory(tenant_a, tmp_path / "a.db")
    import_memory(tenant_b, tmp_path / "a.db")
    record_turn(tenant_b, "b")
    clear(tenant_b)
    with tenant_scope(tenant_b.id):
        assert WindowClear.objects.count() == 2
    import_memory(tenant_b, tmp_path / "a.db")
    flush(tenant_b)
    assert window(tenant_b) == []
    clear(tenant_a)
    record_turn(tenant_a, "c")
    (tmp_path / "a.db").unlink()
    export_memory(tenant_a, tmp_path / "a.db")
    import_memory(tenant_b, tmp_path / "a.db")
    flush(tenant_b)
    assert window(tenant_b) == ["c", "re c"]
