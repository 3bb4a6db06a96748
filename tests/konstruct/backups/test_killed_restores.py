"""A restore that is killed before any step: the next one succeeds, or changes nothing."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.core.management import CommandError
from django.db import connections
from django.utils import timezone
from django.utils.module_loading import import_string

from konstruct.backups import restoring
from konstruct.consistency import verify
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from tenants.context import tenant_scope
from tenants.models import Job, Tenant
from tenants.postgres_tools import restore_session_name
from tenants.schemas import provisioning
from tests import database
from tests.konstruct.backups.conftest import Backup, dumped, run, texts, without_room
from tests.konstruct.conftest import SendMessage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.data, pytest.mark.slow]

STEPS = (
    "restoring.close",
    "tenants.postgres_tools.end_killed_restores",
    "restoring._journal_waiting_erasures",
    "restoring._load",
    "tenants.postgres_tools.restore_schema",
    "tenants.postgres_tools.insert_rows",
    "restoring.settle",
    "tenants.schemas.migrating.migrate_schema",
    "tenants.schemas.provisioning.clear_tenant_cache",
    "restoring._give_up_jobs",
    "restoring.replay",
    "restoring.verify",
    "restoring.reopen",
    "restoring.record_command",
)


def killed(monkeypatch: Any, step: str, *arguments: object, of: UUID | None = None) -> None:
    """Run a command in a process that kills itself before a step of it, for one tenant or any."""
    path = step if step.startswith("tenants.") else f"konstruct.backups.{step}"
    real = import_string(path)

    def kill(*args: Any, **options: Any) -> Any:
        if of not in (None, *(argument.pk for argument in args if isinstance(argument, Tenant))):
            return real(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    child = os.fork()
    if child == 0:
        database.forget_connections()
        monkeypatch.setattr(path, kill)
        try:
            run(*map(str, arguments))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"{step} was not reached"


def settled(tenant: Tenant) -> bool:
    """Check that nothing of a restore and nothing of anna is left."""
    left = dumped(tenant)
    with database.as_owner():
        report = verify(tenant.pk, tenant.slug)
    state = Tenant.objects.get(pk=tenant.pk).state
    return (state, report.findings, "anna" in left) == ("active", [], False)


def test_after_a_kill_before_any_step_the_next_one_ends_right(
    tenant_a: Tenant, backup_with_anna: Callable[[Tenant], Path], monkeypatch: Any
) -> None:
    command = ("restore", backup_with_anna(tenant_a), "--tenant", "tenant-a", "--yes")
    for step in STEPS:
        killed(monkeypatch, step, *command)
        closed = Tenant.objects.get(pk=tenant_a.pk).state == "restoring"
        assert closed == (step != "restoring.close"), step
        run(*map(str, command))
        assert settled(tenant_a), step
        assert texts(tenant_a)[0] == "I am ben.", step


@pytest.mark.parametrize(
    "steps",
    [
        ["restoring.replay"],
        ["restoring.replay", "restoring._load"],
        ["restoring.reopen", "restoring.replay", "restoring._load"],
    ],
)
def test_failed_restore_after_killed_ones_serves_no_unerased_schema(
    make_tenant: database.MakeTenant,
    backup_with_anna: Callable[[Tenant], Path],
    monkeypatch: Any,
    steps: list[str],
) -> None:
    tenant = make_tenant("gone")
    made = backup_with_anna(tenant)
    with database.as_owner():
        provisioning.delete_tenant(tenant)
    command = ("restore", made, "--tenant", "gone", "--undelete", "--yes")
    for step in steps:
        killed(monkeypatch, step, *command)
    with without_room():
        run(*map(str, command))
    assert Tenant.objects.get(pk=tenant.pk).state == "restoring"
    run(*map(str, command))
    assert settled(tenant)
    assert texts(tenant)[0] == "I am ben."


def test_program_of_a_killed_restore_ends_before_the_next_restore(
    tenant_a: Tenant, backup: Backup, monkeypatch: Any
) -> None:
    made = backup("--tenant", "tenant-a")
    killed(monkeypatch, "restoring._load", "restore", made, "--tenant", "tenant-a", "--yes")
    # As psql, whose parent was killed.
    url = database.url_of("owner")
    name = restore_session_name(tenant_a.schema_name)
    orphan = psycopg.connect(url, application_name=name)
    # Such as a staging deployment on the same server with the same tenants.
    elsewhere = psycopg.connect(url, dbname="postgres", application_name=name)
    orphan.execute(f"LOCK TABLE {tenant_a.schema_name}.memory_message".encode())
    run("restore", str(made), "--tenant", "tenant-a", "--yes")
    with pytest.raises(psycopg.OperationalError, match="terminating connection"):
        orphan.commit()
    orphan.close()
    assert elsewhere.execute("SELECT 1").fetchone() == (1,)
    elsewhere.close()
    assert settled(tenant_a)


def test_killed_restore_of_all_continues_with_the_remaining_tenants(
    tenant_a: Tenant, tenant_b: Tenant, send_message: SendMessage, backup: Backup, monkeypatch: Any
) -> None:
    for tenant in (tenant_a, tenant_b):
        send_message(tenant, "Before the backup.")
    command = ("restore", str(backup()), "--all", "--yes")
    send_message(tenant_b, "After the backup.")
    killed(monkeypatch, "restoring._load", *command, of=tenant_b.pk)
    send_message(tenant_a, "After it was restored.")
    kept = texts(tenant_a)
    output = run(*command)
    assert "tenant-a: left out, because an earlier run restored it at" in output
    assert "tenant-b is as of" in output
    assert texts(tenant_a) == kept
    assert "After it was restored." in kept
    assert "After the backup." not in texts(tenant_b)
    assert run(*command).count("left out") == 2
    assert texts(tenant_a) == kept
    # A named tenant, or --again, means one more restore.
    run("restore", command[1], "--tenant", "tenant-b", "--yes")
    assert "left out" not in run(*command, "--again")
    assert "After it was restored." not in texts(tenant_a)


def test_a_restore_is_the_only_one(
    tenant_a: Tenant, tenant_b: Tenant, send_message: SendMessage, backup: Backup, monkeypatch: Any
) -> None:
    """Two at once would each restore all tenants, and lose new messages of restored ones."""
    for tenant in (tenant_a, tenant_b):
        send_message(tenant, "Before the backup.")
    made, real, refusals = str(backup()), restoring._load, list[str]()

    def restore_meanwhile() -> None:
        try:
            with pytest.raises(CommandError) as error:
                run("restore", made, "--tenant", "tenant-a", "--yes")
            refusals.append(str(error.value))
        finally:
            connections.close_all()

    def load(tenant: Tenant, path: Path) -> None:
        if tenant.pk == tenant_b.pk:
            other = threading.Thread(target=restore_meanwhile)
            other.start()
            other.join()
        real(tenant, path)

    monkeypatch.setattr(restoring, "_load", load)
    assert "tenant-b is as of" in run("restore", made, "--all", "--yes")
    assert "another restore is running" in refusals[0]
    # The lock is free again, and a killed process releases it with its session.
    assert "left out" in run("restore", made, "--all", "--yes")


def test_killed_steps_after_a_recovery_continue_with_the_remaining_tenants(
    tenant_a: Tenant, tenant_b: Tenant, monkeypatch: Any
) -> None:
    command = ("restore", "--recovered-to", timezone.now().isoformat(), "--yes")
    killed(monkeypatch, "tenants.schemas.provisioning.clear_tenant_cache", *command, of=tenant_b.pk)
    states = dict(Tenant.objects.values_list("slug", "state"))
    assert states == {"tenant-a": "active", "tenant-b": "restoring"}
    with tenant_scope(tenant_a.pk):
        agent = Agent.objects.create(name="ada")
    accept(Incoming(agent.pk, "ben", "t", "rest", "Hello"), tenant_id=tenant_a.pk)
    output = run(*command)
    assert "tenant-a: left out, because an earlier run restored it at" in output
    assert "tenant-b is as of" in output
    with tenant_scope(tenant_a.pk):  # its replies are not given up
        assert Job.objects.get(kind="reply").failed_at is None
    assert settled(tenant_b)
