"""Jobs whose worker is killed with SIGKILL: the next attempts finish them, once and completely."""

import json
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections

from konstruct.consistency import verify
from konstruct.orchestrator.history_import import importing
from konstruct.orchestrator.identities import channel_identities, erasure_requests
from konstruct.orchestrator.models import Agent, HistoryMerge
from konstruct.privacy import jobs
from memory import indexing
from memory.conversations.short_term import get_recent_messages
from memory.conversations.transcript import ImportedTurn, import_turns
from memory.models import Message, PendingEmbedding
from tenants.audit import models
from tenants.audit.access_log import Actor
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tests import database

pytestmark = pytest.mark.django_db(transaction=True)

EVA = Actor(models.ActorKind.PERSON, "1", "eva")
# The statement before which the first attempt is killed. Each one gets twice as far as the last.
FURTHER = 2
FIRST_KILL = 5
MAX_ATTEMPTS = 12
FAILED = 99
TURNS = 4


@pytest.fixture
def turns(tenant_a: Tenant, agent: Agent) -> None:
    """Indexed turns of maria and bob, half of them old; windows and threads are cached."""
    now = datetime.now(UTC)
    import_turns(
        tenant_a.id,
        [
            ImportedTurn(
                f"{user_id} {number}", agent.id, user_id, f"{user_id}'s", "user",
                f"Turn {number} of {user_id}.", now - timedelta(days=50 if number < 2 else 1),
            )
            for user_id in ("maria", "bob")
            for number in range(TURNS)
        ],
    )  # fmt: skip
    indexing.drain(tenant_a.id)
    for user_id in ("maria", "bob"):
        get_recent_messages(tenant_a.id, agent.id, user_id)


def killed_until_done(tenant: Tenant, work: Callable[[], object]) -> int:
    """Run the work in processes that are killed, each later than the last. Count the kills."""
    before, kills = FIRST_KILL, 0
    while kills < MAX_ATTEMPTS:
        status = _status_of_child(tenant, work, before)
        if status != -signal.SIGKILL:
            assert status == 0
            return kills
        kills += 1
        before = before * FURTHER
        _wait_until_unlocked()
    raise AssertionError("the work does not end")


def _status_of_child(tenant: Tenant, work: Callable[[], object], killed_before: int) -> int:
    child = os.fork()
    if child == 0:
        database.forget_connections()
        left = killed_before

        def count(execute: Callable[..., Any], *arguments: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return execute(*arguments)

        status = FAILED
        try:
            with database.as_owner():
                for alias in connections:
                    connections[alias].execute_wrappers.append(count)
                with tenant_scope(tenant.id):
                    work()
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _wait_until_unlocked() -> None:
    """Wait until Postgres notices the closed socket of a dead client."""
    with database.as_owner(), connection.cursor() as cursor:
        for _ in range(500):
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database ="
                " (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            if cursor.fetchone() == (0,):
                return
            time.sleep(0.02)
    raise AssertionError("the dead worker's locks are still held")


def contents(user_id: str) -> list[str]:
    found = Message.objects.filter(user_id=user_id).order_by("number")
    return list(found.values_list("content", flat=True))


def window(tenant: Tenant, agent: Agent, user_id: str) -> list[str]:
    return [turn["content"] for turn in get_recent_messages(tenant.id, agent.id, user_id)]


def of(user_id: str, *numbers: int) -> list[str]:
    return [f"Turn {number} of {user_id}." for number in numbers or range(TURNS)]


@pytest.mark.slow
def test_a_killed_erasure_of_a_person_removes_them_once(
    tenant_a: Tenant, agent: Agent, turns: None
) -> None:
    with tenant_scope(tenant_a.id):
        request = erasure_requests.request_erasure("maria", by=EVA)

        assert killed_until_done(tenant_a, lambda: jobs.ERASE.carry_out(request.pk)) >= 2

        receipt = models.ErasureRequest.objects.get().receipt
        assert receipt is not None
        assert receipt["tables"]["memory_message"]["removed"] == TURNS
        assert (contents("maria"), contents("bob")) == ([], of("bob"))
    assert window(tenant_a, agent, "maria") == []
    assert window(tenant_a, agent, "bob") == of("bob")
    assert verify(tenant_a.id, "a").findings == []


@pytest.mark.slow
def test_a_killed_erasure_of_a_message_removes_it_once(
    tenant_a: Tenant, agent: Agent, turns: None
) -> None:
    with tenant_scope(tenant_a.id):
        message = Message.objects.get(content="Turn 1 of maria.")
        request = erasure_requests.request_message_erasure(
            agent_id=agent.id, user_id="maria", thread_id="maria's", message_id=message.pk, by=EVA
        )

        assert killed_until_done(tenant_a, lambda: jobs.ERASE_MESSAGES.carry_out(request.pk)) >= 2

        receipt = models.MessageErasure.objects.get().receipt
        assert receipt is not None
        assert receipt["tables"]["memory_message"]["removed"] == 1
        assert (contents("maria"), contents("bob")) == (of("maria", 0, 2, 3), of("bob"))
    assert window(tenant_a, agent, "maria") == of("maria", 0, 2, 3)
    indexing.drain(tenant_a.id)
    assert verify(tenant_a.id, "a").findings == []


@pytest.mark.slow
def test_a_killed_merge_moves_each_message_once(
    tenant_a: Tenant, agent: Agent, turns: None
) -> None:
    with tenant_scope(tenant_a.id):
        identity = channel_identities.identity_of("slack", "T1", "bob")
        channel_identities.link(identity, "maria", by="eva")
        merge = HistoryMerge.objects.get()

        assert killed_until_done(tenant_a, lambda: jobs.MERGE.carry_out(merge.pk)) >= 2

        merge.refresh_from_db()
        assert merge.moved["memory_message"] == TURNS
        assert contents("bob") == []
        assert sorted(contents("maria")) == sorted(of("maria") + of("bob"))
    assert window(tenant_a, agent, "bob") == []
    assert sorted(window(tenant_a, agent, "maria")) == sorted(of("maria") + of("bob"))
    assert verify(tenant_a.id, "a").findings == []


@pytest.mark.slow
def test_killed_retention_removes_old_rows_and_logs_once(
    tenant_a: Tenant, agent: Agent, turns: None
) -> None:
    with tenant_scope(tenant_a.id):
        rule = models.RetentionRule.objects.create(days=30)

        assert killed_until_done(tenant_a, lambda: jobs.RETAIN.carry_out(rule.pk)) >= 2

        assert (contents("maria"), contents("bob")) == (of("maria", 2, 3), of("bob", 2, 3))
        events = models.AccessEvent.objects.filter(actor="retention")
        assert sum(event.detail["messages"] for event in events) == TURNS
    for user_id in ("maria", "bob"):
        assert window(tenant_a, agent, user_id) == of(user_id, 2, 3)
    assert verify(tenant_a.id, "a").findings == []


@pytest.mark.slow
def test_a_killed_import_of_history_writes_each_line_once(
    tenant_a: Tenant, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "BATCH", 1)
    lines = [{"role": "user", "content": text} for text in of("maria")]
    path = tmp_path / "history.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    arguments = ["--tenant", tenant_a.slug, "--agent", "ada", "--user", "maria", str(path)]

    assert killed_until_done(tenant_a, lambda: call_command("import_history", *arguments)) >= 2

    with tenant_scope(tenant_a.id):
        assert contents("maria") == of("maria")
        assert PendingEmbedding.objects.count() == TURNS
    assert window(tenant_a, agent, "maria") == of("maria")
    indexing.drain(tenant_a.id)
    assert verify(tenant_a.id, "a").findings == []
