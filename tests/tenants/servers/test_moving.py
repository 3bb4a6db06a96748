"""Moving a tenant: no row is lost, and nothing is left on the server that it came from."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, close_old_connections, connections
from django.db.models import Count
from django.test import Client

from konstruct.api.auth.keys import issue_key
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import Agent
from konstruct.privacy.erasure import erasing
from memory.models import Message
from tenants import jobs, journal, moving, postgres_tools
from tenants.audit.access_log import Actor
from tenants.audit.models import AccessEvent, ActorKind
from tenants.context import current_server, tenant_scope
from tenants.exceptions import KonstructError, TenantMoving
from tenants.models import Job, OperatorEvent, Tenant
from tenants.moving import CopyDiffers, Moved, move_tenant
from tenants.schemas import provisioning
from tenants.servers import MAIN, cache_server
from tenants.serving import as_tenant_moving, require_serving
from tests import database
from tests.memory.messages import add_messages
from tests.servers.postgres import Server
from tests.tenants.servers.contents import contents, where

pytestmark = [pytest.mark.data, pytest.mark.slow]


@pytest.fixture
def tenant(further: dict[str, Server]) -> Iterator[Tenant]:
    """A tenant on the main server, with an agent, messages, and waiting jobs."""
    with database.as_owner():
        made = provisioning.create_tenant(slug="mover", server=MAIN)
    with tenant_scope(made.id):
        agent = create_agent(tenant_id=made.id, name="Ada")
        add_messages(
            made, *(f"message {number}" for number in range(30)), agent=agent.id, index=False
        )
        Job.objects.create(kind="reply", key=uuid4(), attempts=2)
    yield made
    with database.as_owner():
        provisioning.delete_tenant(Tenant.objects.get(slug="mover"))


def _move(tenant: Tenant, to: str) -> Moved | None:
    with database.as_owner():
        moved = move_tenant(Tenant.objects.get(pk=tenant.pk), to)
        tenant.refresh_from_db()
        return moved


def _agents(tenant: Tenant) -> list[str]:
    with tenant_scope(tenant.id):
        return sorted(Agent.objects.values_list("name", flat=True))


def _waiting(tenant: Tenant) -> dict[str, int]:
    with tenant_scope(tenant.id):
        return dict(Job.objects.values_list("kind").annotate(Count("key")).order_by("kind"))


def test_all_of_a_tenant_moves_and_is_served_from_there(
    tenant: Tenant, further: dict[str, Server]
) -> None:
    with tenant_scope(tenant.id):
        _, key = issue_key(tenant_id=tenant.id, name="test")
        expected = set(Message.objects.values_list("id", "content"))
    assert _waiting(tenant) == {"embedding": 30, "reply": 1}
    for to in ("eu1", "eu2", MAIN):
        before = contents(tenant, tenant.server)
        _move(tenant, to)
        assert where(tenant) == {to: before}
        # In the process that served it from the other server.
        close_old_connections()
        client = Client(headers={"host": "mover.localhost", "authorization": f"Bearer {key}"})
        assert [agent["name"] for agent in client.get("/api/v1/agents/").json()["results"]] == [
            "Ada"
        ]
        with tenant_scope(tenant.id):
            assert current_server() == to
            assert set(Message.objects.values_list("id", "content")) == expected
    assert _waiting(tenant) == {"embedding": 30, "reply": 1}
    with tenant_scope(tenant.id):
        add_messages(tenant, "after", index=False)
        # Sequences continue.
        assert AccessEvent.objects.count() == AccessEvent.objects.latest("id").id
    event = OperatorEvent.objects.filter(action="edit", name="mover").latest("id")
    assert event.detail["command"] == "move_tenant"
    assert (event.detail["before"]["server"], event.detail["after"]["server"]) == ("eu2", MAIN)


def test_a_tenant_that_is_moved_is_refused_for_a_moment(
    tenant: Tenant, further: dict[str, Server]
) -> None:
    with database.as_owner():
        Tenant.objects.filter(pk=tenant.pk).update(moving_to="eu1")
    page = Client(headers={"host": "mover.localhost"}).get("/admin/")
    assert (page.status_code, page["Retry-After"]) == (503, "3")
    assert page.content.decode().startswith("This service is being moved")
    with tenant_scope(tenant.id):
        _, key = issue_key(tenant_id=tenant.id, name="test")
    client = Client(headers={"host": "localhost", "authorization": f"Bearer {key}"})
    assert client.get("/api/v1/agents/")["Retry-After"] == "3"
    with pytest.raises(TenantMoving):
        require_serving(tenant.id)
    assert jobs.claim(jobs.KINDS["reply"]) is None
    with database.as_owner():
        assert moving.settle_moves() == 1
    assert require_serving(tenant.id).server == MAIN
    assert jobs.claim(jobs.KINDS["reply"]) is not None


def test_process_with_the_old_place_of_a_tenant_writes_nothing(
    tenant: Tenant, further: dict[str, Server]
) -> None:
    _move(tenant, "eu1")
    cache_server(tenant.id, MAIN)
    with tenant_scope(tenant.id):
        with pytest.raises(ProgrammingError) as refused:
            create_agent(tenant_id=tenant.id, name="late")
        assert isinstance(as_tenant_moving(refused.value), TenantMoving)
    assert _agents(tenant) == ["Ada"]  # and has received the new server by now


@pytest.mark.parametrize("hides", [True, False])
def test_rows_that_are_not_copied_prevent_the_move(
    tenant: Tenant, further: dict[str, Server], monkeypatch: pytest.MonkeyPatch, hides: bool
) -> None:
    """A policy hides them from pg_dump, or they are lost on the way."""
    before = where(tenant)
    table = f"{tenant.schema_name}.orchestrator_agent"
    if hides:
        with database.as_owner(), connections[MAIN].cursor() as cursor:
            cursor.execute(f"ALTER POLICY tenant_isolation ON {table} USING (false)")
    else:
        real = postgres_tools.copy_schema

        def lose_a_row(source: Any, target: Any, *of: Any) -> None:
            real(source, target, *of)
            further["eu1"].do(f"DELETE FROM {table}")

        monkeypatch.setattr(postgres_tools, "copy_schema", lose_a_row)
    with pytest.raises(CopyDiffers, match=r"orchestrator_agent differs .* 1 rows here, 0 there"):
        _move(tenant, "eu1")
    assert where(tenant) == before
    assert require_serving(tenant.id).server == MAIN


def test_a_move_gives_up_if_another_session_locks_a_table(
    tenant: Tenant, further: dict[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "LOCK_TIMEOUT", "50ms")
    with psycopg.connect(database.url_of("superuser")) as other:
        other.execute(f"LOCK {tenant.schema_name}.memory_message IN ROW EXCLUSIVE MODE".encode())
        with pytest.raises(KonstructError, match="locked by another session on default"):
            _move(tenant, "eu1")
    assert _agents(tenant) == ["Ada"]
    assert (tenant.server, tenant.moving_to) == (MAIN, "")


def test_person_is_erased_after_a_move_with_the_copy_that_was_left(
    tenant: Tenant, further: dict[str, Server], tmp_path: Path, settings: Any
) -> None:
    settings.ERASURE_JOURNAL = str(tmp_path / "erasures.jsonl")
    (tmp_path / "erasures.jsonl").touch()
    _move(tenant, "eu1")
    # As the move leaves it if the server is down when the schema is to be dropped.
    further["eu2"].do(f"CREATE SCHEMA {tenant.schema_name} AUTHORIZATION konstruct_owner")
    with database.as_owner(), tenant_scope(tenant.id):
        erasing.carry_out(request_erasure("ann", by=Actor(ActorKind.PERSON, "1", "eva")))
        assert Message.objects.count() == 0
    assert {entry["tenant"] for entry in journal.read()} == {str(tenant.id)}
    assert list(where(tenant)) == ["eu1"]
    ((left,),) = further["eu2"].ask(f"SELECT to_regnamespace('{tenant.schema_name}')")
    assert left is None


def test_impossible_move_is_refused_before_it_starts(
    tenant: Tenant, further: dict[str, Server], settings: Any
) -> None:
    before = where(tenant)

    def refusal(to: str) -> str:
        with database.as_owner(), pytest.raises(CommandError) as refused:
            call_command("move_tenant", "mover", to=to)
        return str(refused.value)

    assert "no server is called 'us1', but default, eu1, eu2 are" in refusal("us1")
    assert "tenant 'mover' is on default already" in refusal(MAIN)
    settings.TENANT_DATABASES_CLOSED = ["eu1"]
    assert "the server 'eu1' takes no new tenants (TENANT_DATABASES_CLOSED)" in refusal("eu1")
    ((number,),) = further["eu2"].ask(
        "SELECT count(*) FROM django_migrations WHERE app = 'tenants'"
    )
    further["eu2"].do("UPDATE django_migrations SET app = 'lost' WHERE app = 'tenants'")
    try:
        assert f"the public schema of eu2 lacks {number} migrations" in refusal("eu2")
    finally:
        further["eu2"].do("UPDATE django_migrations SET app = 'tenants' WHERE app = 'lost'")
    with database.as_owner():
        Tenant.objects.filter(pk=tenant.pk).update(migrated_to="0.0")
        assert "run `manage.py migrate --schema mover`" in refusal("eu2")
        Tenant.objects.filter(pk=tenant.pk).update(migrated_to=tenant.migrated_to)
    assert where(tenant) == before


def test_dry_run_prints_the_rows_and_changes_nothing(
    tenant: Tenant, further: dict[str, Server], capsys: pytest.CaptureFixture[str]
) -> None:
    before = where(tenant)
    with database.as_owner():
        call_command("move_tenant", "mover", to="eu1", dry_run=True)
        assert where(tenant) == before
        call_command("move_tenant", "mover", to="eu1")
    *reckoned, done = capsys.readouterr().out.splitlines()
    assert len(reckoned) == 2
    assert all(" from default to eu1: it is held for about " in line for line in reckoned)
    assert "mover is on eu1: " in done
