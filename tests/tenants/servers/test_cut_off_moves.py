"""A move during other operations on its tenant, and a move whose servers fail."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.privacy import erasure, jobs
from konstruct.privacy.erasure.erasing import NotErased
from memory.models import Message
from tenants.audit.access_log import Actor
from tenants.audit.models import ActorKind, ErasureRequest
from tenants.context import tenant_scope
from tenants.exceptions import SchemaBusy, UnknownTenant
from tenants.models import Job, Tenant
from tenants.moving import service
from tenants.moving.service import MoveInterrupted, move_tenant, settle_moves
from tenants.moving.transfer import Transfer
from tenants.schemas import provisioning
from tenants.schemas.migrating import migrate_schema
from tenants.schemas.old_copies import SchemaLeftOver, old_copies
from tenants.servers import MAIN
from tests import database
from tests.memory.messages import add_messages
from tests.servers.postgres import Server
from tests.tenants.servers.contents import where

pytestmark = pytest.mark.data

EVA = Actor(ActorKind.PERSON, "1", "eva")
STEPS = ("_new_schema", "_fill", "_hold", "_finish_copy", "_retire_schema")


@pytest.fixture
def tenant(further: dict[str, Server]) -> Iterator[Tenant]:
    """A tenant on a server that tests may stop, with messages of bob and carl, and jobs."""
    with database.as_owner():
        made = provisioning.create_tenant(slug="mover", server="eu1")
    with tenant_scope(made.id):
        agent = create_agent(tenant_id=made.id, name="Ada")
        for user in ("bob", "carl"):
            contents = (f"{user} says {number}" for number in range(5))
            add_messages(made, *contents, user=user, agent=agent.id, index=False)
        Job.objects.create(kind="reply", key=uuid4(), attempts=2)
    yield made
    with database.as_owner():
        settle_moves()
        for left in Tenant.objects.filter(slug="mover"):
            provisioning.delete_tenant(left)


@pytest.fixture
def during(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run a function once, after a step of the move or before it."""

    def do(step: str, act: Callable[[], object], *, before: bool = False) -> None:
        owner: Any = service if step == "_switch" else Transfer
        real = getattr(owner, step)
        left = [act]

        def stepped(*args: Any) -> Any:
            if before and left:
                left.pop()()
            done = real(*args)
            if left:
                left.pop()()
            return done

        monkeypatch.setattr(owner, step, stepped)

    return do


def _move(tenant: Tenant, **options: Any) -> Any:
    with database.as_owner():
        moved = move_tenant(Tenant.objects.get(pk=tenant.pk), "eu2", **options)
        tenant.refresh_from_db()
        return moved


def _elsewhere(work: Callable[[], object]) -> object:
    """Return the result of another thread of the owner, or its error."""
    results: list[object] = []

    def run() -> None:
        try:
            with database.as_owner():
                results.append(work())
        except Exception as error:
            results.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    return results[0]


def _lose_sessions_of_main() -> None:
    with psycopg.connect(database.url_of("superuser"), autocommit=True) as superuser:
        superuser.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND usename = 'konstruct_owner'"
        )


def _case(step: str, lost: str) -> Any:
    """Return a case. All are long, except the loss of eu1 in the step `_leave`."""
    marks = () if (step, lost) == ("_retire_schema", "eu1") else pytest.mark.long
    return pytest.param(step, lost, marks=marks)


@pytest.mark.parametrize(
    ("step", "lost"), [_case(step, lost) for step in STEPS for lost in ("eu1", "eu2", MAIN)]
)
def test_server_restart_during_a_move_loses_nothing(
    tenant: Tenant, further: dict[str, Server], during: Callable[..., None], step: str, lost: str
) -> None:
    (before,) = where(tenant).values()

    def lose() -> None:
        if lost == MAIN:
            return _lose_sessions_of_main()
        further[lost].stop()
        further[lost].start()

    during(step, lose)
    if step == "_retire_schema" or lost == MAIN:
        assert _move(tenant).rows
    else:
        with pytest.raises(
            MoveInterrupted, match="Nothing was changed: tenant 'mover' is served from"
        ):
            _move(tenant)
    tenant.refresh_from_db()
    assert (tenant.server, tenant.moving_to) == (
        "eu2" if step == "_retire_schema" or lost == MAIN else "eu1",
        "",
    )
    assert where(tenant) == {tenant.server: before}


def test_copy_that_was_not_removed_stops_erasures_until_dropped(
    tenant: Tenant, further: dict[str, Server], during: Callable[..., None]
) -> None:
    def fail() -> None:
        further["eu2"].stop()
        raise psycopg.OperationalError("lost")

    during("_retire_schema", fail, before=True)
    with pytest.raises(MoveInterrupted, match=r"lost\. Nothing was changed"):
        _move(tenant)
    further["eu2"].start()
    assert list(where(tenant)) == ["eu1", "eu2"]
    tenant.refresh_from_db()
    assert (tenant.server, tenant.moving_to) == ("eu1", "")
    with database.as_owner():
        with tenant_scope(tenant.id), pytest.raises(SchemaLeftOver, match="exists on eu2"):
            erasure.carry_out(request_erasure("bob", by=EVA))
        with pytest.raises(CommandError, match="exists on eu2 already: check its content"):
            call_command("move_tenant", "mover", to="eu2")
        provisioning.delete_tenant(tenant)
    assert where(tenant) == {}
    assert further["eu2"].ask("SELECT count(*) FROM tenants_job") == [(0,)]


def test_person_erased_during_the_copy_is_in_no_file_of_the_copy(
    tenant: Tenant, further: dict[str, Server], during: Callable[..., None]
) -> None:
    def erase() -> object:
        with tenant_scope(tenant.id):
            return erasure.carry_out(request_erasure("bob", by=EVA))

    results: list[object] = []
    during("_fill", lambda: results.append(_elsewhere(erase)))
    _move(tenant)
    (refused,) = results
    assert isinstance(refused, NotErased)
    assert "stays open while the tenant is moved" in str(refused)
    assert len(list(old_copies(tenant.id))) == 1
    with database.as_owner(), tenant_scope(tenant.id):
        assert set(Message.objects.values_list("user_id", flat=True)) == {"carl"}
        Job.objects.filter(kind="erasure").update(sweep_at=datetime(2020, 1, 1, tzinfo=UTC))
        assert jobs.ERASE.run_due() == 1
        assert ErasureRequest.objects.get().done_at
    assert _files_with(further["eu2"], tenant.schema_name, b"bob says") == []
    assert list(old_copies(tenant.id)) == []


def _files_with(server: Server, schema: str, text: bytes) -> list[object]:
    server.do("CHECKPOINT")
    files = server.ask(
        "SELECT relname, pg_relation_filepath(oid) FROM pg_class"
        f" WHERE relnamespace = '{schema}'::regnamespace AND relkind IN ('r', 't', 'i')"
    )
    postgres = server.home / "postgres"
    return [name for name, path in files if text in (postgres / str(path)).read_bytes()]


def test_other_operations_on_the_tenant_wait_or_are_copied(
    tenant: Tenant, during: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = provisioning.schema_lock
    for module in (service, provisioning):
        monkeypatch.setattr(module, "schema_lock", lambda name, **_: lock(name, wait_seconds=0.1))

    def deleted() -> None:
        provisioning.delete_tenant(Tenant.objects.get(pk=tenant.pk))

    def renamed() -> None:
        provisioning.suspend_tenant(Tenant.objects.get(pk=tenant.pk))
        Tenant.objects.filter(pk=tenant.pk).update(name="New")

    results: list[Any] = []

    def meanwhile() -> None:
        results.append(_elsewhere(lambda: migrate_schema(tenant.schema_name, wait_seconds=0)))
        results.append(_elsewhere(settle_moves))
        for to in ("eu2", MAIN):
            results.append(_elsewhere(lambda: move_tenant(Tenant.objects.get(pk=tenant.pk), to)))  # noqa: B023
        results.append(_elsewhere(deleted))

    def change() -> None:
        assert _elsewhere(renamed) is None

    during("_fill", change)
    during("_retire_schema", meanwhile)
    (before,) = where(tenant).values()
    _move(tenant)
    migrated, settled, *refused = results
    assert (migrated.busy, settled) == (True, 0)
    assert [type(error) for error in refused] == [SchemaBusy] * 3
    assert (tenant.state, tenant.name, tenant.server) == ("suspended", "New", "eu2")
    assert where(tenant) == {"eu2": before}
    with database.as_owner():
        stale = Tenant.objects.get(pk=tenant.pk)
        deleted()
        with pytest.raises(UnknownTenant, match="tenant 'mover' was deleted in the meantime"):
            move_tenant(stale, "eu1")


def _command(to: str, **options: Any) -> None:
    with database.as_owner():
        call_command("move_tenant", "mover", to=to, **options)
