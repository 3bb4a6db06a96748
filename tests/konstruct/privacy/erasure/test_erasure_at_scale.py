"""An erasure of a person with many messages: its work grows in batches only."""

import hashlib
from collections.abc import Callable
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import psycopg
import pytest
from django.conf import settings
from django.db import InternalError
from django_redis import get_redis_connection
from redis.connection import AbstractConnection

from konstruct.local import embedded
from konstruct.local.embedded import paths
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import Agent
from konstruct.privacy.erasure import carry_out, residue, rows, storage
from memory.conversations.short_term import append_message
from memory.models import ConversationEmbedding, Message
from tenants.audit.access_log import Actor
from tenants.audit.models import ActorKind, ErasureRequest
from tenants.context import connection
from tenants.models import Tenant
from tenants.redis_keys import memory_short_key
from tests import database
from tests.messages import messages_to_postgres, statements

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]

EVA = Actor(ActorKind.PERSON, "1", "eva")


def add_exchanges(agent: Agent, user_id: str, messages: int) -> None:
    """Create messages with a reply each, every second pair in a separate thread."""
    for number in range(messages // 2):
        message = Message.objects.create(
            agent_id=agent.pk, user_id=user_id, role="user", channel="rest",
            thread_id=f"{user_id} {number // 2}", content=f"Question {number} of {user_id}",
        )  # fmt: skip
        Message.objects.create(
            agent_id=agent.pk, user_id=user_id, role="assistant", channel="rest",
            thread_id=message.thread_id, content=f"Answer {number}", in_reply_to=message,
        )  # fmt: skip


def others_keys(tenant: Tenant, agent: Agent, number: int) -> None:
    client = get_redis_connection("default")
    for n in range(number):
        client.rpush(memory_short_key(tenant.id, agent.pk, f"other{n}"), f"turn {uuid4()}")


def work_of(user_id: str) -> tuple[int, int]:
    """Run an erasure. Return the numbers of statements and of cache commands."""
    request = request_erasure(user_id, by=EVA)
    sent = AbstractConnection.send_packed_command
    with (
        statements() as sent_to_postgres,
        # Only of this process: others use the same server.
        patch.object(AbstractConnection, "send_packed_command", autospec=True) as messages,
    ):
        messages.side_effect = sent
        carry_out(request)
    return len(sent_to_postgres), messages.call_count


def test_more_messages_threads_and_keys_take_no_more_round_trips(
    tenant_a: Tenant, agent: Agent, owner: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "rewrite_cache_file", lambda: "none")
    works = []
    for size in (40, 80, 160):
        user_id = f"heavy{size}"
        add_exchanges(agent, user_id, size)
        others_keys(tenant_a, agent, size)
        works.append(work_of(user_id))
    to_postgres, commands = zip(*works, strict=True)
    assert to_postgres[0] == to_postgres[1] == to_postgres[2]
    # A scan over 160 keys may take one more page of SCAN.
    assert max(commands) - min(commands) <= 4
    assert min(commands) >= 2
    # Of the cache: two scans, and a removal for each.
    assert max(commands) < 30


def test_batches_are_recorded_and_reported_in_order(
    tenant_a: Tenant, agent: Agent, owner: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_exchanges(agent, "maria", 40)
    monkeypatch.setattr(rows, "BATCH", 10)
    request, steps, noted = request_erasure("maria", by=EVA), [], []

    def report(step: str) -> None:
        steps.append(step)
        progress = ErasureRequest.objects.get(pk=request.pk).progress or {}
        noted.append((progress["messages"]["removed"], Message.objects.count()))

    receipt = carry_out(request, report=report).receipt
    assert receipt is not None
    counted = [step for step in steps if step.endswith("messages removed")]
    assert len(counted) >= 3
    assert counted[-1] == "40 of 40 messages removed"
    assert all(removed + left == 40 for removed, left in noted)
    assert receipt["tables"]["memory_message"]["removed"] == 40


def test_digest_of_all_ids_is_equal_with_any_batch_size(
    tenant_a: Tenant, agent: Agent, owner: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_exchanges(agent, "maria", 40)
    ids = [str(pk) for pk in Message.objects.values_list("pk", flat=True)]
    expected = sum(int(hashlib.sha256(id.encode()).hexdigest(), 16) for id in ids) % 2**256
    monkeypatch.setattr(rows, "BATCH", 7)
    receipt = carry_out(request_erasure("maria", by=EVA)).receipt
    assert receipt is not None
    assert receipt["tables"]["memory_message"]["sha256_of_ids"] == f"{expected:064x}"


SECRET = "heliotropewalnut"


# A unique id.
USER_ID = "maria-of-the-heliotropes"


def tables_on_disk_with(text: str, tenant: Tenant) -> list[str]:
    """Return tables and indexes of the tenant whose files contain the text."""
    found = []
    with psycopg.connect(
        embedded.database_url("superuser", connection.settings_dict["NAME"]), autocommit=True
    ) as admin:
        admin.execute("CHECKPOINT")
        tables = admin.execute(
            "SELECT relname, pg_relation_filepath(oid) FROM pg_class"
            " WHERE relnamespace = %s::regnamespace AND pg_relation_filepath(oid) IS NOT NULL",
            [tenant.schema_name],
        ).fetchall()
    for table, path in tables:
        for part in (paths.home() / "postgres").glob(f"{path}*"):
            if text.encode() in part.read_bytes():
                found.append(table)
    return sorted(set(found))


# Transactions of other tests, also in other databases, would keep removed rows in the files.
@pytest.mark.alone
@pytest.mark.skipif(not settings.EMBEDDED_DATABASE, reason="reads the files of the server")
def test_files_of_small_tables_and_the_cache_contain_no_erased_data(
    tenant_a: Tenant, agent: Agent, send_message: Callable[..., Message], owner: None
) -> None:
    send_message(f"My {SECRET}.", USER_ID, "hers")
    append_message(tenant_a.id, agent.pk, USER_ID, "user", f"By itself: {SECRET}")
    assert "memory_message" in tables_on_disk_with(SECRET, tenant_a)
    assert "message_user" in tables_on_disk_with(USER_ID, tenant_a)
    receipt: Any = carry_out(request_erasure(USER_ID, by=EVA)).receipt
    assert tables_on_disk_with(SECRET, tenant_a) == []
    assert tables_on_disk_with(USER_ID, tenant_a) == []
    files = [file for file in (paths.home() / "valkey").rglob("*") if file.is_file()]
    assert files
    assert [file for file in files if SECRET.encode() in file.read_bytes()] == []
    stored = receipt["storage"]
    assert "memory_message" in stored["rewritten"]
    assert (stored["vacuumed"], stored["cache_file"]) == ([], "rewritten")
    assert "pages_of_vacuumed_tables" not in stored["later"]
    assert {"write_ahead_log", "logs", "backups"} <= stored["later"].keys()


def test_rows_visible_to_an_open_transaction_are_not_reported_as_erased(
    tenant_a: Tenant, agent: Agent, send_message: Callable[..., Message], owner: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(storage, "TRANSACTION_TIMEOUT_SECONDS", 0.2)
    send_message("Hello.", "maria", "hers")
    # A dump of another database has the same effect.
    there = database.url_of("superuser", tenant_a.server)
    with psycopg.connect(there, dbname="postgres") as other:
        other.execute("SELECT pg_current_xact_id()")
        receipt: Any = carry_out(request_erasure("maria", by=EVA)).receipt
    stored = receipt["storage"]
    assert {"memory_message", "audit_erasurerequest"} <= set(stored["vacuumed"])
    assert "pages_of_vacuumed_tables" in stored["later"]


@pytest.mark.alone
def test_large_tables_are_vacuumed_unless_disabled(
    tenant_a: Tenant, agent: Agent, send_message: Callable[..., Message], owner: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(storage, "MAX_REWRITE_BYTES", 0)
    for rewrite in (False, True):
        send_message("Hello.", "maria", "hers")
        receipt: Any = carry_out(request_erasure("maria", by=EVA), rewrite=rewrite).receipt
        stored = receipt["storage"]
        done, other = ("rewritten", "vacuumed") if rewrite else ("vacuumed", "rewritten")
        assert "memory_message" in stored[done]
        assert stored[other] == []
        assert ("pages_of_vacuumed_tables" in stored["later"]) is not rewrite
    assert not ConversationEmbedding.objects.exists()


@pytest.mark.alone
def test_a_table_that_is_in_use_is_vacuumed_and_not_waited_for(
    tenant_a: Tenant, agent: Agent, send_message: Callable[..., Message], owner: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(storage, "LOCK_TIMEOUT", "10ms")
    send_message("Hello.", "maria", "hers")
    request = request_erasure("maria", by=EVA)
    settle = storage.purge_files

    def settled(tables: Any, *, rewrite: bool = False) -> Any:
        with psycopg.connect(database.url_of("owner")) as other:
            other.execute(f"SELECT FROM {tenant_a.schema_name}.memory_message LIMIT 1")
            return settle(tables, rewrite=rewrite)

    monkeypatch.setattr(storage, "purge_files", settled)
    receipt: Any = carry_out(request).receipt
    assert receipt["storage"]["vacuumed"] == ["memory_message"]
    assert "memory_posting" in receipt["storage"]["rewritten"]


@pytest.mark.alone
def test_a_rewrite_that_misses_a_row_of_toast_is_repeated(
    tenant_a: Tenant, agent: Agent, send_message: Callable[..., Message], owner: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    vacuum, failed = storage._vacuum, []

    def fail_once(table: str, how: str) -> None:
        if table == "memory_message" and not failed:
            failed.append(table)
            raise InternalError("missing chunk number 0 for toast value 129959 in pg_toast_19214")
        vacuum(table, how)

    monkeypatch.setattr(storage, "_vacuum", fail_once)
    send_message("Hello.", "maria", "hers")
    receipt: Any = carry_out(request_erasure("maria", by=EVA)).receipt
    assert failed == ["memory_message"]
    assert "memory_message" in receipt["storage"]["rewritten"]


def test_tables_are_searched_by_cursors(owner: None, agent: Agent, tenant_a: Tenant) -> None:
    """One batch of rows is in memory, whatever the size of the tenant."""
    add_exchanges(agent, "other", residue.BATCH + 2)
    add_exchanges(agent, "gone", 2)
    with messages_to_postgres() as sent:
        carry_out(request_erasure("gone", by=EVA))
    every = [statement for message in sent for statement in message]
    (search,) = (
        statement
        for statement in every
        if f'FROM "{tenant_a.schema_name}"."memory_message"' in statement
    )
    declare, cursor, *_ = search.split()
    assert declare == "DECLARE"
    fetches = [
        statement
        for statement in every
        if statement.startswith("FETCH ") and statement.endswith(cursor)
    ]
    assert len(fetches) == 3  # two full batches, and an empty one
