"""Moving a tenant: no row is lost, and the old copy gets no writes."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, close_old_connections, connections
from django.db.models import Count
from django.test import Client

from konstruct.api.auth.keys import issue_key
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import Agent
from konstruct.privacy.erasure import messages
from memory.models import Message
from tenants import jobs
from tenants.audit.models import AccessEvent, MessageErasure
from tenants.context import current_server, tenant_scope
from tenants.exceptions import TenantMoving
from tenants.jobs import kind
from tenants.models import Job, OperatorEvent, Tenant
from tenants.moving import service, transfer
from tenants.moving.service import move_tenant
from tenants.moving.transfer import CopyDiffers, MoveProgress
from tenants.schemas import old_copies, provisioning
from tenants.schemas.old_copies import drop_old_copies
from tenants.servers import MAIN, cache_server
from tenants.serving import as_tenant_moving, require_serving
from tests import database
from tests.memory.messages import add_messages
from tests.servers.postgres import Server
from tests.tenants.servers.contents import contents, where

pytestmark = pytest.mark.data


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


def _move(tenant: Tenant, to: str, **options: Any) -> Any:
    with database.as_owner():
        moved = move_tenant(Tenant.objects.get(pk=tenant.pk), to, **options)
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


def test_old_copy_is_not_served_and_is_removed_after_a_day(
    tenant: Tenant, further: dict[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(tenant, MAIN)
    _move(tenant, "eu1")
    (copy,) = old_copies.old_copies(tenant.id)
    left = contents(tenant, MAIN, copy.schema_name)
    assert (copy.server, left.pop("outbox")) == (MAIN, [])
    assert left == {name: rows for name, rows in before.items() if name != "outbox"}
    with (
        tenant_scope(tenant.id),
        connections[MAIN].cursor() as cursor,
        pytest.raises(ProgrammingError, match="permission denied for schema"),
    ):
        cursor.execute(f"SELECT FROM {copy.schema_name}.orchestrator_agent")
    with database.as_owner():
        assert drop_old_copies() == 0
        monkeypatch.setattr(old_copies, "COPY_LIFETIME", timedelta(0))
        assert drop_old_copies() == 1
    assert list(old_copies.old_copies()) == []
    assert _agents(tenant) == ["Ada"]


def test_old_copy_is_removed_by_an_erasure_in_the_tenant(
    tenant: Tenant, further: dict[str, Server]
) -> None:
    _move(tenant, "eu1")
    assert len(list(old_copies.old_copies(tenant.id))) == 1
    with database.as_owner(), tenant_scope(tenant.id):
        message = Message.objects.earliest("number")
        request = MessageErasure.objects.create(
            agent_id=message.agent_id,
            user_id=message.user_id,
            thread_id=message.thread_id,
            message_id=message.pk,
            requested_by="somebody",
        )
        messages.carry_out(request)
        assert Message.objects.count() == 29
    assert list(old_copies.old_copies(tenant.id)) == []


class _Meanwhile(MoveProgress):
    """Changes rows of every kind while the tenant is copied, and checks whether it is served."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant

    def on_index_build(self, indexes: int) -> None:
        with tenant_scope(self.tenant.id):
            create_agent(tenant_id=self.tenant.id, name="Bea")
            Agent.objects.filter(name="Ada").update(name="Ada Lovelace")
            add_messages(self.tenant, "while it was copied", user="bob", index=False)
            Job.objects.filter(kind="reply").delete()


def test_changes_during_the_copy_are_copied(tenant: Tenant, further: dict[str, Server]) -> None:
    moved = _move(tenant, "eu1", watch=_Meanwhile(tenant))
    assert moved.changed_rows >= 4
    assert list(where(tenant)) == ["eu1"]
    assert _agents(tenant) == ["Ada Lovelace", "Bea"]
    with tenant_scope(tenant.id):
        assert Message.objects.count() == 31
        assert not Job.objects.filter(kind="reply").exists()


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
    assert jobs.claim(kind.KINDS["reply"]) is None
    with database.as_owner():
        assert service.settle_moves() == 1
    assert require_serving(tenant.id).server == MAIN
    assert jobs.claim(kind.KINDS["reply"]) is not None


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


def test_copy_with_differences_changes_nothing(
    tenant: Tenant, further: dict[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = where(tenant)

    def lose_a_row(source: Any, target: Any, table: Any, keys: Any) -> None:
        if table.name.endswith('"orchestrator_agent"'):
            transfer.run(target, f"DELETE FROM {table.name}")

    monkeypatch.setattr(transfer, "replace_rows", lose_a_row)
    with pytest.raises(CopyDiffers, match="1 rows here, 0 there"):
        _move(tenant, "eu1")
    assert where(tenant) == before
    assert require_serving(tenant.id).server == MAIN


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
    further["eu2"].do(f"CREATE SCHEMA {tenant.schema_name}")
    assert f"a schema {tenant.schema_name} exists on eu2 already" in refusal("eu2")
    further["eu2"].do(f"DROP SCHEMA {tenant.schema_name}")
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


def test_a_policy_that_hides_rows_loses_none(tenant: Tenant, further: dict[str, Server]) -> None:
    before = contents(tenant, MAIN)
    with database.as_owner(), connections[MAIN].cursor() as cursor:
        table = f"{tenant.schema_name}.orchestrator_agent"
        cursor.execute(f"ALTER POLICY tenant_isolation ON {table} USING (false)")
    moved = _move(tenant, "eu1")
    assert moved.changed_rows == 1
    assert where(tenant) == {"eu1": before}
