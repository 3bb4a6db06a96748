"""A move that is killed or loses a server at any step: the tenant is on exactly one server."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import Agent
from tenants import moving, postgres_tools
from tenants.context import tenant_scope
from tenants.models import Job, Tenant
from tenants.postgres_tools import ToolFailed, poll
from tenants.schemas import migrating, provisioning
from tenants.servers import MAIN, clear_server_cache
from tenants.serving import require_serving
from tests import database
from tests.memory.messages import add_messages
from tests.servers.postgres import Server
from tests.tenants.servers.contents import where

pytestmark = pytest.mark.slow

# Killed before each, and while rows pass from pg_dump to pg_restore.
STEPS = (
    "_move", "drop_left_over", "_has_no_running_job", "_lock", "read_rows", "digests_of",
    "copy_schema", "copyfileobj", "insert_rows", "_switch", "_settle", "clear_server_cache",
)  # fmt: skip
AFTER_THE_SWITCH = ("_settle", "clear_server_cache")


@pytest.fixture(scope="module")
def tenant(further: dict[str, Server]) -> Iterator[Tenant]:
    """A tenant that is moved back and forth."""
    with database.as_owner():
        made = provisioning.create_tenant(slug="killed", server="eu1")
    with tenant_scope(made.id):
        create_agent(tenant_id=made.id, name="Ada")
        add_messages(made, *(f"message {number}" for number in range(20)), index=False)
        Job.objects.create(kind="reply", key=uuid4())
    yield made
    with database.as_owner():
        moving.settle_moves()
        provisioning.delete_tenant(Tenant.objects.get(slug="killed"))


def _cases(short: str) -> list[Any]:
    """Return the steps. All but one are long."""
    return [step if step == short else pytest.param(step, marks=pytest.mark.long) for step in STEPS]


def _place(step: str) -> tuple[Any, str]:
    modules = (moving, postgres_tools, postgres_tools.shutil, migrating, provisioning)
    return next(module for module in modules if hasattr(module, step)), step


def _other_server(tenant: Tenant) -> str:
    tenant.refresh_from_db()
    return "eu2" if tenant.server == "eu1" else "eu1"


def _check(tenant: Tenant, server: str, rows: object) -> None:
    tenant.refresh_from_db()
    clear_server_cache()
    assert (tenant.server, tenant.moving_to) == (server, "")
    assert where(tenant) == {server: rows}
    assert require_serving(tenant.id).server == server
    with tenant_scope(tenant.id):
        assert list(Agent.objects.values_list("name", flat=True)) == ["Ada"]
        Agent.objects.update(name="Ada")


@pytest.mark.parametrize("step", _cases("_switch"))
def test_killed_move_leaves_the_tenant_on_one_server(tenant: Tenant, step: str) -> None:
    with database.as_owner():
        to, was = _other_server(tenant), tenant.server
        (rows,) = where(tenant).values()
        child = os.fork()
        if child == 0:
            try:
                _move_and_die(tenant, to, step)
            finally:
                os._exit(0)
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), "the move was not killed"

        def is_settled() -> bool:
            moving.settle_moves()
            return not Tenant.objects.filter(pk=tenant.pk).exclude(moving_to="").exists()

        # Postgres needs a moment to notice the death of the other process.
        assert poll(is_settled, seconds=10)
    _check(tenant, to if step in AFTER_THE_SWITCH else was, rows)


def _move_and_die(tenant: Tenant, to: str, step: str) -> None:
    database.forget_connections()

    def die(source: Any = None, target: Any = None, *_: Any) -> None:
        if step == "copyfileobj":
            target.write(source.read(100_000))
            target.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(*_place(step), die)
    moving.move_tenant(tenant, to)


@pytest.mark.long
@pytest.mark.parametrize("lost", ["eu1", "eu2", MAIN])
@pytest.mark.parametrize("step", STEPS[1:])
def test_restart_of_a_server_leaves_the_tenant_on_one(
    tenant: Tenant, further: dict[str, Server], monkeypatch: Any, step: str, lost: str
) -> None:
    to, was = _other_server(tenant), tenant.server
    (rows,) = where(tenant).values()
    place = _place(step)
    real: Callable[..., Any] = getattr(*place)
    left = [step]

    def lose(*args: Any, **options: Any) -> Any:
        if left:
            left.pop()
            if lost == MAIN:
                _lose_sessions_of_main()
            else:
                further[lost].stop()
                further[lost].start()
        return real(*args, **options)

    monkeypatch.setattr(*place, lose)
    failed = ""
    with database.as_owner():
        try:
            moving.move_tenant(Tenant.objects.get(pk=tenant.pk), to)
        except (moving.MoveInterrupted, ToolFailed) as error:
            failed = str(error)
        moving.settle_moves()
    tenant.refresh_from_db()
    assert not left
    if step != "_switch":  # the commit may be before the loss
        assert tenant.server == (to if not failed or step in AFTER_THE_SWITCH else was)
    _check(tenant, tenant.server, rows)


def _lose_sessions_of_main() -> None:
    with psycopg.connect(database.url_of("superuser"), autocommit=True) as superuser:
        superuser.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND usename = 'konstruct_owner'"
        )
