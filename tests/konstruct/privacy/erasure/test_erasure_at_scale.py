"""An erasure of a person with many messages: its work grows in batches only."""

from typing import Any
from unittest.mock import patch
from uuid import uuid4

import psycopg
import pytest
from django.conf import settings
from django_redis import get_redis_connection
from redis.connection import AbstractConnection

from konstruct.local import services
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import Agent
from konstruct.privacy.erasure import person
from konstruct.privacy.erasure.erasing import carry_out
from memory.conversations.short_term import append_message
from memory.models import Message
from tenants.audit.access_log import Actor
from tenants.audit.models import ActorKind
from tenants.context import connection
from tenants.models import Tenant
from tenants.redis_keys import memory_short_key
from tests import database
from tests.konstruct.conftest import SendMessage
from tests.messages import statements

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
    monkeypatch.setattr(person, "rewrite_cache_file", lambda: "none")
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


SECRET = "heliotropewalnut"


# A unique id.
USER_ID = "maria-of-the-heliotropes"


def tables_on_disk_with(text: str, tenant: Tenant) -> list[str]:
    """Return tables and indexes of the tenant whose files contain the text."""
    found = []
    with psycopg.connect(
        services.database_url("superuser", connection.settings_dict["NAME"]), autocommit=True
    ) as admin:
        admin.execute("CHECKPOINT")
        tables = admin.execute(
            "SELECT relname, pg_relation_filepath(oid) FROM pg_class"
            " WHERE relnamespace = %s::regnamespace AND pg_relation_filepath(oid) IS NOT NULL",
            [tenant.schema_name],
        ).fetchall()
    for table, path in tables:
        for part in (services.home() / "postgres").glob(f"{path}*"):
            if text.encode() in part.read_bytes():
                found.append(table)
    return sorted(set(found))


# Transactions of other tests, also in other databases, would keep removed rows in the files.
@pytest.mark.alone
@pytest.mark.skipif(not settings.EMBEDDED_DATABASE, reason="reads the files of the server")
def test_files_of_small_tables_and_the_cache_contain_no_erased_data(
    tenant_a: Tenant, agent: Agent, send_message: SendMessage, owner: None
) -> None:
    send_message(f"My {SECRET}.", USER_ID, "hers")
    append_message(tenant_a.id, agent.pk, USER_ID, "user", f"By itself: {SECRET}")
    assert "memory_message" in tables_on_disk_with(SECRET, tenant_a)
    assert "message_user" in tables_on_disk_with(USER_ID, tenant_a)
    receipt: Any = carry_out(request_erasure(USER_ID, by=EVA)).receipt
    assert tables_on_disk_with(SECRET, tenant_a) == []
    assert tables_on_disk_with(USER_ID, tenant_a) == []
    files = [file for file in (services.home() / "valkey").rglob("*") if file.is_file()]
    assert files
    assert [file for file in files if SECRET.encode() in file.read_bytes()] == []
    stored = receipt["storage"]
    assert "memory_message" in stored["rewritten"]
    assert (stored["vacuumed"], stored["cache_file"]) == ([], "rewritten")
    assert "pages_of_vacuumed_tables" not in stored["later"]
    assert {"write_ahead_log", "logs", "backups"} <= stored["later"].keys()


def test_rows_visible_to_an_open_transaction_are_not_reported_as_erased(
    tenant_a: Tenant, agent: Agent, send_message: SendMessage, owner: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(person, "TRANSACTION_TIMEOUT_SECONDS", 0.2)
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
def test_a_table_that_is_in_use_is_vacuumed_and_not_waited_for(
    tenant_a: Tenant, agent: Agent, send_message: SendMessage, owner: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(person, "LOCK_TIMEOUT", "10ms")
    send_message("Hello.", "maria", "hers")
    request = request_erasure("maria", by=EVA)
    settle = person.purge_files

    def settled(tables: Any, *, rewrite: bool = False) -> Any:
        with psycopg.connect(database.url_of("owner")) as other:
            other.execute(f"SELECT FROM {tenant_a.schema_name}.memory_message LIMIT 1")
            return settle(tables, rewrite=rewrite)

    monkeypatch.setattr(person, "purge_files", settled)
    receipt: Any = carry_out(request).receipt
    assert receipt["storage"]["vacuumed"] == ["memory_message"]
    assert "memory_posting" in receipt["storage"]["rewritten"]
