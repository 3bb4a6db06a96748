"""A restore that is killed before a step of it: the next one ends right, or changes nothing."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management.base import CommandError
from django.db import connections

from konstruct.backups import restoring
from konstruct.backups.postgres import name_of_restore
from konstruct.consistency import verify
from memory.models import Message
from tenants.context import fetch_value, tenant_scope
from tenants.exceptions import KonstructError
from tenants.models import Tenant
from tenants.schemas import provisioning
from tests import database
from tests.konstruct.backups.conftest import run
from tests.konstruct.backups.test_restore import BY, dumped, owner_works, request_erasure, texts

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

STEPS = (
    "close",
    "_end_killed_restores",
    "_note_what_waits",
    "_put_aside",
    "_load",
    "restore_schema",
    "insert_rows",
    "record_command",
    "migrate_schema",
    "forget_cache",
    "_park_jobs",
    "replay",
    "verify",
    "_serve",
    "_reopen",
)


def killed(monkeypatch: Any, step: str, *arguments: object) -> None:
    """Run a command in a process that kills itself before a step of it."""
    child = os.fork()
    if child == 0:
        # What the parent is connected to must be neither used nor closed.
        inherited = [(each, each.connection) for each in connections.all(initialized_only=True)]
        for each, _ in inherited:
            each.connection = None
        monkeypatch.setattr(restoring, step, lambda *a, **b: os.kill(os.getpid(), signal.SIGKILL))
        try:
            run(*map(str, arguments))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"{step} was not reached"


def settled(tenant: Tenant) -> bool:
    """Whether nothing is left of a restore, and nothing of anna."""
    left = dumped(tenant)
    replaced = fetch_value("SELECT count(*) FROM pg_namespace WHERE nspname ~ '^replaced_'")
    with database.as_owner():
        report = verify(tenant.pk, tenant.slug)
    state = Tenant.objects.get(pk=tenant.pk).state
    return (state, replaced, report.findings, "anna" in left) == ("active", 0, [], False)


def test_after_a_kill_before_any_step_the_next_one_ends_right(
    tenant_a: Tenant,
    talk: Callable[..., Message],
    backup: Callable[..., Path],
    monkeypatch: Any,
) -> None:
    talk(tenant_a, "I am anna.", "anna")
    talk(tenant_a, "I am ben.", "ben")
    made = backup("--tenant", "tenant-a")
    with tenant_scope(tenant_a.id):
        request_erasure("anna", by=BY)
    owner_works()
    command = ("restore", made, "--tenant", "tenant-a", "--yes")
    for step in STEPS:
        killed(monkeypatch, step, *command)
        closed = Tenant.objects.get(pk=tenant_a.pk).state == "restoring"
        assert closed == (step != "close"), step
        run(*map(str, command))
        assert settled(tenant_a), step
        assert texts(tenant_a)[0] == "I am ben.", step


@pytest.mark.parametrize("steps", [["replay"], ["replay", "_load"], ["_serve", "replay", "_load"]])
def test_a_restore_that_fails_after_killed_ones_serves_nothing_that_is_not_erased_again(
    make_tenant: Callable[..., Tenant],
    talk: Callable[..., Message],
    backup: Callable[..., Path],
    monkeypatch: Any,
    steps: list[str],
) -> None:
    tenant = make_tenant("gone")
    talk(tenant, "I am anna.", "anna")
    talk(tenant, "I am ben.", "ben")
    made = backup("--tenant", "gone")
    with tenant_scope(tenant.id):
        request_erasure("anna", by=BY)
    owner_works()
    with database.as_owner():
        provisioning.delete_tenant(tenant)
    command = ("restore", made, "--tenant", "gone", "--undelete", "--yes")
    for step in steps:
        killed(monkeypatch, step, *command)

    def fails(*args: object) -> None:
        raise KonstructError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(restoring, "restore_schema", fails)
        with pytest.raises(CommandError, match="no room"):
            run(*map(str, command))
    assert Tenant.objects.get(pk=tenant.pk).state == "restoring"
    run(*map(str, command))
    assert settled(tenant)
    assert texts(tenant)[0] == "I am ben."


def test_a_restore_that_fails_after_a_killed_one_puts_back_what_was_served(
    tenant_a: Tenant,
    talk: Callable[..., Message],
    backup: Callable[..., Path],
    monkeypatch: Any,
) -> None:
    made = backup("--tenant", "tenant-a")
    talk(tenant_a, "This came later.")
    before = texts(tenant_a)
    command = ("restore", made, "--tenant", "tenant-a", "--yes")
    killed(monkeypatch, "replay", *command)

    def fails(*args: object) -> None:
        raise KonstructError("no room")

    monkeypatch.setattr(restoring, "restore_schema", fails)
    with pytest.raises(CommandError, match="no room"):
        run(*map(str, command))
    assert texts(tenant_a) == before
    assert settled(tenant_a)


def test_the_program_of_a_killed_restore_does_not_go_on_beside_the_next_one(
    tenant_a: Tenant, backup: Callable[..., Path], monkeypatch: Any
) -> None:
    made = backup("--tenant", "tenant-a")
    killed(monkeypatch, "_load", "restore", made, "--tenant", "tenant-a", "--yes")
    # As pg_restore, of which the parent was killed: it makes the schema, and commits later.
    url = database.url_of("owner")
    name = name_of_restore(tenant_a.schema_name)
    orphan = psycopg.connect(url, application_name=name)
    # Such as a staging deployment on the same server, which has the same tenants.
    elsewhere = psycopg.connect(url, dbname="postgres", application_name=name)
    orphan.execute(f"CREATE SCHEMA {tenant_a.schema_name}".encode())
    run("restore", str(made), "--tenant", "tenant-a", "--yes")
    with pytest.raises(psycopg.OperationalError, match="terminating connection"):
        orphan.commit()
    orphan.close()
    assert elsewhere.execute("SELECT 1").fetchone() == (1,)
    elsewhere.close()
    assert settled(tenant_a)


def test_a_program_is_named_after_the_restore(
    tenant_a: Tenant, backup: Callable[..., Path], monkeypatch: Any
) -> None:
    made = backup("--tenant", "tenant-a")
    names: list[str] = []
    real = subprocess.run

    def noted(arguments: list[Any], **options: Any) -> Any:
        names.extend(str(each) for each in arguments)
        return real(arguments, **options)

    monkeypatch.setattr(subprocess, "run", noted)
    run("restore", str(made), "--tenant", "tenant-a", "--yes")
    assert any(f"'{name_of_restore(tenant_a.schema_name)}'" in each for each in names)
