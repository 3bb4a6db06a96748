"""Tenants created by several processes at once, beside the owner worker, and by killed ones."""

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.db import connections

from tenants import postgres_tools
from tenants.context import connection, server_scope
from tenants.exceptions import SchemaBusy
from tenants.models import Tenant
from tenants.operations import unprotected_relations
from tenants.schemas import provisioning
from tenants.schemas.migrating import current_state
from tests import database
from tests.database import as_owner

pytestmark = [pytest.mark.data, pytest.mark.django_db(transaction=True)]


SET_UP = "import sys, django; django.setup(); print('begins', flush=True);"
CREATE = f"""{SET_UP}
from django.core.management import call_command
for slug in sys.argv[1:]:
    call_command("create_tenant", slug)
"""
# The worker's job without its pauses, so that it sees each new tenant as soon as create_tenant.
PROVISION = f"""{SET_UP}
from tenants.schemas.provisioning import migrate_due
while True:
    migrate_due()
"""
# What follows is killed before its nth statement, or before its first one that begins
# with a text, on any server.
KILLED = f"""{SET_UP}
import os, signal
from django.db import connections
left = int(sys.argv[1]) if sys.argv[1].isdigit() else 0
def kill(execute, sql, *arguments):
    global left
    left -= 1
    if not left or sql.startswith(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return execute(sql, *arguments)
for alias in connections:
    connections[alias].execute_wrappers.append(kill)
"""
DIE = f"""{KILLED}
from django.core.management import call_command
call_command("create_tenant", sys.argv[2])
"""
MIGRATE = f"""{SET_UP}
from django.core.management import call_command
call_command("migrate")
"""


def assert_complete(slug: str) -> None:
    """Check that it is served, with all migrations, valid indexes, and a policy on each table."""
    tenant = Tenant.objects.get(slug=slug)
    assert (tenant.state, tenant.provisioning_error) == ("active", "")
    assert tenant.migrated_to == current_state()
    with server_scope(tenant.server), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), count(*) FILTER (WHERE NOT indisvalid) FROM pg_index"
            " JOIN pg_class AS c ON c.oid = indexrelid WHERE relnamespace = %s::regnamespace",
            [tenant.schema_name],
        )
        indexes, invalid = cursor.fetchone()
        assert unprotected_relations(cursor, f"^{tenant.schema_name}$") == []
    assert (indexes > 100, invalid) == (True, 0)


def test_processes_create_tenants_concurrently_with_the_owner_worker(
    start: Callable[..., "subprocess.Popen[str]"],
) -> None:
    made = [(f"at-once-{number}a", f"at-once-{number}b") for number in range(2)]
    worker = start(PROVISION)
    makers = [start(CREATE, *slugs) for slugs in made]
    migrate = start(MIGRATE)
    for process in (*makers, migrate):
        output, _ = process.communicate()
        assert process.returncode == 0, output
    assert worker.poll() is None
    for slug in (slug for slugs in made for slug in slugs):
        assert_complete(slug)


@pytest.mark.parametrize("statement", ["CREATE SCHEMA", 'UPDATE "tenants_tenant"'])
def test_killed_create_tenant_does_not_block_the_next(
    start: Callable[..., "subprocess.Popen[str]"], statement: str
) -> None:
    killed = start(DIE, statement, "killed")
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert Tenant.objects.get(slug="killed").state == "provisioning"
    with as_owner():
        provisioning.create_tenant(slug="killed")
    assert_complete("killed")


def test_create_tenant_waits_for_the_worker_and_takes_its_tenant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tenant = Tenant.objects.create(slug="begun", name="begun elsewhere")
    with as_owner(), contextlib.ExitStack() as worker:
        worker.enter_context(another_holds(tenant))
        slugs = []

        def sleep(seconds: float) -> None:
            slugs.append(seconds)
            if len(slugs) == 3:
                worker.close()

        monkeypatch.setattr(postgres_tools.time, "sleep", sleep)
        assert provisioning.create_tenant(slug="begun").state == "active"
    assert len(slugs) == 3


def test_a_tenant_is_not_deleted_while_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = Tenant.objects.create(slug="begun", name="begun elsewhere")
    monkeypatch.setattr(
        postgres_tools, "schema_lock", partial(postgres_tools.schema_lock, wait_seconds=0)
    )
    with (
        as_owner(),
        another_holds(tenant),
        pytest.raises(SchemaBusy, match="another process makes, migrates or drops"),
    ):
        provisioning.delete_tenant(tenant)
    tenant.refresh_from_db()
    assert tenant.state == "provisioning"
    with as_owner():
        provisioning.delete_tenant(tenant)
    assert not Tenant.objects.filter(slug="begun").exists()


@contextlib.contextmanager
def another_holds(tenant: Tenant) -> Iterator[int]:
    """Hold the lock of the tenant's schema in another session. Yield its backend's process id."""
    wrappers = {alias: connections[alias] for alias in connections}
    with (
        database.as_owner(),
        server_scope(tenant.server),
        postgres_tools.schema_lock(tenant.schema_name),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT pg_backend_pid()")
        (backend,) = cursor.fetchone()
        held = {alias: connections[alias] for alias in connections}
        _put(wrappers)
        try:
            yield backend
        finally:
            _put(held)


def _put(wrappers: dict[str, Any]) -> None:
    for alias, wrapper in wrappers.items():
        connections[alias] = wrapper
