"""A standby of a server: only reads that may be stale use it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import DatabaseError, close_old_connections, connections
from django.test import Client

from konstruct.api.auth.keys import issue_key
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import Agent
from konstruct.privacy.archive.exporting import export_memory
from konstruct.privacy.erasure import messages
from memory.archive import SQLiteManager
from memory.models import Message
from tenants import transaction
from tenants.audit.models import MessageErasure
from tenants.checks.at_start import refuse_unsafe_role
from tenants.context import connection, current_server, read_from_replica, tenant_scope
from tenants.models import Tenant
from tenants.moving.service import move_tenant
from tenants.postgresql import pool
from tenants.schemas import provisioning
from tests import database
from tests.memory.messages import add_messages
from tests.servers.postgres import Server

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def standby(further: dict[str, Server]) -> Iterator[Server]:
    """A server that streams from eu1."""
    with further["eu1"].standby() as streaming:
        close_old_connections()
        yield streaming


@pytest.fixture(scope="module")
def tenant(further: dict[str, Server], standby: Server) -> Iterator[Tenant]:
    """A tenant with one agent and one message on the lagging standby, and two of each on eu1."""
    with database.as_owner():
        made = provisioning.create_tenant(slug="read", server="eu1")
    with tenant_scope(made.id):
        create_agent(tenant_id=made.id, name="early")
        add_messages(made, "said before", index=False)
    standby.catch_up(further["eu1"])
    standby.pause()
    with tenant_scope(made.id):
        create_agent(tenant_id=made.id, name="late")
        add_messages(made, "said after", index=False)
    yield made
    with database.as_owner():
        provisioning.delete_tenant(made)


def _agents() -> list[str]:
    return sorted(Agent.objects.values_list("name", flat=True))


def test_stale_reads_use_the_standby_and_writes_the_server(tenant: Tenant) -> None:
    with tenant_scope(tenant.id):
        with read_from_replica():
            assert current_server() == "eu1_replica"
            assert _agents() == ["early"]
            assert Agent.objects.filter(name="late").update(persona="written") == 1
            with (
                connection.cursor() as cursor,
                pytest.raises(DatabaseError, match="read-only transaction"),
            ):
                cursor.execute("UPDATE orchestrator_agent SET persona = 'raw'")
        assert current_server() == "eu1"
        assert _agents() == ["early", "late"]
        with transaction.atomic(), read_from_replica():
            assert _agents() == ["early", "late"]  # its own writes may be among them


def test_statistics_lists_and_exports_are_read_there_and_conversations_are_not(
    tenant: Tenant, tmp_path: Path
) -> None:
    with tenant_scope(tenant.id):
        _, key = issue_key(tenant_id=tenant.id, name="test")
    close_old_connections()
    client = Client(headers={"host": "read.localhost", "authorization": f"Bearer {key}"})
    assert client.get("/api/v1/usage/").json()["messages"] == 1
    assert len(client.get("/api/v1/agents/").json()["results"]) == 2
    export_memory(tenant, tmp_path / "one.sqlite")
    with SQLiteManager(tmp_path / "one.sqlite") as file:
        contents = [row[0] for row in file.rows("SELECT content FROM messages")]
    assert contents == ["said before"]


def test_isolation_holds_on_the_standby(tenant: Tenant, further: dict[str, Server]) -> None:
    refuse_unsafe_role()
    with (
        tenant_scope(tenant.id),
        read_from_replica(),
        connections["eu1_replica"].cursor() as cursor,
    ):
        cursor.execute("SELECT count(*) FROM tenants_job")
        assert cursor.fetchone() == (1,)
        with pytest.raises(DatabaseError, match="permission denied"):
            cursor.execute("SELECT set_config('app.current_tenant', 'x', false)")


def test_without_the_standby_the_server_is_read(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(connections["eu1_replica"].settings_dict, "PORT", "1")
    connections["eu1_replica"].close()
    with tenant_scope(tenant.id), read_from_replica():
        assert (current_server(), _agents()) == ("eu1", ["early", "late"])
    assert "The server is read, not its standby eu1_replica" in caplog.text
    pool._down_until.clear()


def test_messages_and_erasures_are_replicated_to_the_standby(
    tenant: Tenant, standby: Server, further: dict[str, Server]
) -> None:
    def replicated_contents() -> list[str]:
        with tenant_scope(tenant.id), read_from_replica():
            assert current_server() == "eu1_replica"
            return sorted(Message.objects.values_list("content", flat=True))

    with tenant_scope(tenant.id):
        erased = Message.objects.get(content="said before")
        request = MessageErasure.objects.create(
            agent_id=erased.agent_id,
            user_id=erased.user_id,
            thread_id=erased.thread_id,
            message_id=erased.pk,
            requested_by="somebody",
        )
    with database.as_owner(), tenant_scope(tenant.id):
        messages.carry_out(request)
    assert replicated_contents() == ["said before"]  # it lags
    standby.do("SELECT pg_wal_replay_resume()")
    standby.catch_up(further["eu1"])
    assert replicated_contents() == ["said after"]
    standby.stop()
    close_old_connections()
    add_messages(tenant, "said while it was stopped", index=False)
    with tenant_scope(tenant.id), read_from_replica():
        assert (current_server(), Message.objects.count()) == ("eu1", 2)
    standby.start()
    close_old_connections()
    standby.catch_up(further["eu1"])
    assert replicated_contents() == ["said after", "said while it was stopped"]


def test_moved_tenant_is_read_on_the_standby_after_replication(
    standby: Server, further: dict[str, Server]
) -> None:
    with database.as_owner():
        mover = provisioning.create_tenant(slug="mover", server="eu2")
        standby.pause()
        move_tenant(mover, "eu1")
    with tenant_scope(mover.id), read_from_replica():
        assert current_server() == "eu1"
    standby.do("SELECT pg_wal_replay_resume()")
    standby.catch_up(further["eu1"])
    with tenant_scope(mover.id), read_from_replica():
        assert (current_server(), _agents()) == ("eu1_replica", [])
    with database.as_owner():
        provisioning.delete_tenant(mover)
