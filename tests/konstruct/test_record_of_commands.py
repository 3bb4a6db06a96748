"""Entries of operators' commands in the access log of their tenant."""

import getpass
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command, get_commands
from django.db import DatabaseError

from konstruct.api.models import ApiKey
from konstruct.orchestrator.models import Agent
from memory.indexing import drain
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.konstruct.conftest import access_events, user_of

PACKAGES = ("konstruct", "memory", "tenants")
RECORDED = {
    "connect_slack", "create_agent", "create_api_key", "create_tenant_admin", "erase_user",
    "export_memory", "import_memory", "import_history", "reembed", "reindex_words",
    "reseal_channel_tokens",
    "verify_memory",
}  # fmt: skip
OPERATOR_COMMANDS = {
    "backup", "changepassword", "create_tenant", "createsuperuser", "delete_tenant", "move_tenant",
    "restore", "suspend_tenant",
}  # fmt: skip
CHANGE_NOTHING_OF_A_TENANT = {
    "clearsessions": "sessions that have expired",
    "demo": "made of the others, on a machine of one's own",
    "list_tenants": "names and states",
    "make_schema_script": "writes a file of the code",
    "migrate": "schemas; roles are set right as the code has them",
    "migrate_schemas": "the same",
    "owner_worker": "does what was asked for, and recorded where it was",
    "worker": "does jobs, which are recorded where they were asked for",
    "prove_isolation": "reads",
    "serve": "starts processes",
    "set_up_tenant": "runs others, which are recorded",
    "verify_backup": "reads files",
    "verify_receipt": "reads a file",
}


def only_event(tenant: Tenant) -> AccessEvent:
    (event,) = access_events(tenant)
    assert (event.actor_kind, event.actor) == ("operator", getpass.getuser())
    assert event.address is None
    return event


def test_every_command_is_recorded_or_declared_exempt() -> None:
    commands = {name for name, app in get_commands().items() if app.partition(".")[0] in PACKAGES}
    assert commands == RECORDED | OPERATOR_COMMANDS | CHANGE_NOTHING_OF_A_TENANT.keys()


def test_an_agent(tenant_a: Tenant) -> None:
    call_command("create_agent", tenant="tenant-a", name="ada", persona="Kind.", verbosity=0)
    event = only_event(tenant_a)
    with tenant_scope(tenant_a.id):
        agent = Agent.objects.get()
    assert (event.action, event.subject, event.agent_id) == ("create", "agent", agent.pk)
    assert event.detail["command"] == "create_agent"
    assert event.detail["after"]["is_active"] is True
    assert "Kind." not in str(event.detail)


def test_a_key(tenant_a: Tenant, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("create_api_key", tenant="tenant-a", name="billing", user="eve")
    text = capsys.readouterr().out.strip()
    event = only_event(tenant_a)
    assert (event.action, event.subject, user_of(event)) == ("create", "API key", "eve")
    with tenant_scope(tenant_a.id):
        key = ApiKey.objects.get()
    assert event.detail["after"]["prefix"] == key.prefix
    assert key.secret_digest not in str(event.detail)
    assert text.rpartition("_")[2] not in str(event.detail)


def test_a_person(tenant_a: Tenant) -> None:
    password = "correct horse battery"
    call_command(
        "create_tenant_admin", tenant="tenant-a", username="zoe", password=password, verbosity=0
    )
    event = only_event(tenant_a)
    assert (event.action, event.subject) == ("create", "user")
    assert event.detail["after"]["is_active"] is True
    assert "password" not in event.detail["after"]


@pytest.mark.django_db(transaction=True)  # an export has a snapshot of its own
def test_imports_and_exports(tenant_a: Tenant, tenant_b: Tenant, tmp_path: Path) -> None:
    with tenant_scope(tenant_a.id):
        Agent.objects.create(name="ada")
    line = {
        "external_id": "e1", "agent": "ada", "user_id": "eve", "thread_id": "t", "role": "user",
        "content": "Hi", "created_at": "2025-03-14T09:00:00Z",
    }  # fmt: skip
    lines = tmp_path / "lines.jsonl"
    lines.write_text(json.dumps(line))
    call_command("import_history", str(lines), tenant="tenant-a", verbosity=0)
    drain(tenant_a.id)
    archive = tmp_path / "eve.sqlite"
    call_command("export_memory", str(archive), tenant="tenant-a", user="eve", verbosity=0)
    imported, exported = access_events(tenant_a)
    assert (imported.action, imported.detail["counts"]) == ("import", {"created": 1})
    assert (exported.action, user_of(exported)) == ("export", "eve")
    call_command("import_memory", str(archive), tenant="tenant-b", verbosity=0)
    event = only_event(tenant_b)
    assert (event.action, event.subject) == ("import", "memory")
    assert event.detail["new"]["messages"] == 1


def test_a_workspace(tenant_a: Tenant, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CHANNEL_TOKEN_KEYS = [Fernet.generate_key().decode()]
    with tenant_scope(tenant_a.id):
        Agent.objects.create(name="ada")
    for token in ("xoxb-first", "xoxb-second"):
        monkeypatch.setenv("SLACK_BOT_TOKEN", token)
        call_command(
            "connect_slack", tenant="tenant-a", agent="ada", workspace="T1", bot_user="U1",
            verbosity=0,
        )  # fmt: skip
    call_command("reseal_channel_tokens", verbosity=0)
    created, edited, resealed = access_events(tenant_a)
    assert (created.action, created.detail["after"]["state"]) == ("create", "connected")
    assert (edited.action, edited.detail["withheld"]) == ("edit", ["encrypted_token"])
    assert resealed.detail == {"command": "reseal_channel_tokens", "resealed_tokens": 1}
    for event in (created, edited, resealed):
        assert "xoxb" not in str(event.detail)


def test_action_without_a_record_is_rolled_back(
    tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(*_: Any, **__: Any) -> None:
        raise DatabaseError("no room")

    monkeypatch.setattr("tenants.audit.access_log.record_access", is_full)
    for command, options in {
        "create_agent": {"name": "ada"},
        "create_api_key": {"name": "billing"},
    }.items():
        with pytest.raises(DatabaseError):
            call_command(command, tenant="tenant-a", **options)
    with tenant_scope(tenant_a.id):
        for model in (Agent, ApiKey):
            assert not model.objects.exists()
