"""A move that is killed after any statement: the tenant is complete, on exactly one server."""

import os
import random
import signal
import sys
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import connections

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import Agent
from tenants.context import tenant_scope
from tenants.locking import poll
from tenants.models import Job, Tenant
from tenants.moving.service import move_tenant, settle_moves
from tenants.postgresql.exchange import Exchange
from tenants.schemas import provisioning
from tenants.schemas.old_copies import drop_old_copies
from tenants.servers import MAIN, clear_server_cache
from tenants.serving import require_serving
from tests import database
from tests.memory.messages import add_messages
from tests.servers.postgres import Server
from tests.tenants.servers.contents import where

pytestmark = pytest.mark.data

NEVER = 10**9


@pytest.fixture(scope="module")
def tenant(further: dict[str, Server]) -> Iterator[Tenant]:
    """A tenant that is moved back and forth."""
    with database.as_owner():
        made = provisioning.create_tenant(slug="killed", server=MAIN)
    with tenant_scope(made.id):
        create_agent(tenant_id=made.id, name="Ada")
        add_messages(made, *(f"message {number}" for number in range(20)), index=False)
        Job.objects.create(kind="reply", key=uuid4())
    yield made
    with database.as_owner():
        settle_moves()
        provisioning.delete_tenant(Tenant.objects.get(slug="killed"))


def _move_in_child(tenant: Tenant, to: str, *, killed_before: int) -> int | None:
    """Run the move in a process that kills itself before that statement.

    Return the number of statements of the move, None if it was killed.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        sent = 0
        # The connections of the parent must be neither used nor closed.
        inherited = [
            (wrapper, wrapper.connection) for wrapper in connections.all(initialized_only=True)
        ]
        for wrapper, _ in inherited:
            wrapper.connection = None

        def counted(function: Any) -> Any:
            def count(*args: Any, **kwargs: Any) -> Any:
                nonlocal sent
                sent += 1
                if sent == killed_before:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*args, **kwargs)

            return count

        psycopg.Cursor.execute = counted(psycopg.Cursor.execute)  # type: ignore[method-assign]
        psycopg.Cursor.copy = counted(psycopg.Cursor.copy)  # type: ignore[method-assign]
        Exchange.finish = counted(Exchange.finish)  # type: ignore[method-assign]
        try:
            move_tenant(tenant, to, patience=0)
            os.write(writing, str(sent).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        output = pipe.read()
    _, status = os.waitpid(child, 0)
    assert bool(output) != os.WIFSIGNALED(status), "the move has failed, and was not killed"
    return int(output) if output else None


def _kill(tenant: Tenant, before: int) -> str:
    """Move the tenant, and kill the move. Return the tenant's server afterwards."""
    was = where(tenant)
    with database.as_owner():
        tenant.refresh_from_db()
        (to,) = {MAIN, "eu1"} - {tenant.server}
        _move_in_child(tenant, to, killed_before=before)
        tenant.refresh_from_db()
        found = where(tenant)
        if tenant.moving_to:  # the tenant is not served, and either copy is complete, or both
            assert all(row["outbox"] for row in found.values())

        def is_settled() -> bool:
            settle_moves()
            return not Tenant.objects.filter(pk=tenant.pk).exclude(moving_to="").exists()

        # Postgres needs a moment to notice the death of the other process.
        assert poll(is_settled, seconds=10)
        tenant.refresh_from_db()
    ((server, contents),) = where(tenant).items()
    assert (server, tenant.moving_to) == (tenant.server, "")
    assert [contents] == list(was.values())
    clear_server_cache()
    assert require_serving(tenant.id).server == server
    with tenant_scope(tenant.id):
        assert list(Agent.objects.values_list("name", flat=True)) == ["Ada"]
    return server


def _statements(tenant: Tenant) -> int:
    with database.as_owner():
        tenant.refresh_from_db()
        to = "eu1" if tenant.server == MAIN else MAIN
        sent = _move_in_child(tenant, to, killed_before=NEVER)
    assert sent is not None
    return sent


def test_killed_move_continues_or_is_reverted(tenant: Tenant) -> None:
    last = _statements(tenant)
    ended = {_kill(tenant, last - before) for before in (3, 6, 200)}
    assert ended == {MAIN, "eu1"}


def test_fifty_moves_are_killed_anywhere(tenant: Tenant) -> None:
    last = _statements(tenant)
    chosen = random.Random(23)
    # Half of the kills are at the decision: at the end, after the rows.
    places = [chosen.randrange(1, last + 1) for _ in range(25)]
    places += [last - chosen.randrange(40) for _ in range(25)]
    ended = []
    for number, place in enumerate(places):
        ended.append(_kill(tenant, place))
        if number % 10 == 9:
            with database.as_owner():
                drop_old_copies(tenant.id)
    sys.stdout.write(f"{last} statements; killed before {sorted(places)}; then on {ended}\n")
