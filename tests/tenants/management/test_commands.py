"""The operators' commands as processes: output, errors, exit status."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command, get_commands, load_command_class
from django_redis import get_redis_connection

from konstruct.api.models import ApiKey
from konstruct.local import services
from konstruct.management.commands import create_tenant_admin
from konstruct.orchestrator.models import Agent
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand
from tenants.models import Domain, Tenant
from tenants.naming import OWNER_COMMANDS
from tests.konstruct.running import run_python

PROJECT = Path(__file__).resolve().parents[3]
# The packages with the project's commands.
PROJECT_APPS = {"tenants", "memory", "konstruct", "konstruct.orchestrator", "konstruct.api"}


@dataclass(frozen=True)
class Ran:
    """The result of a command."""

    status: int
    out: str
    err: str


@pytest.fixture
def manage(process_environment: dict[str, str]) -> Callable[..., Ran]:
    """Run manage.py as an operator does."""

    def run(*arguments: str, **environment: str) -> Ran:
        ran = run_python(
            "manage.py",
            *arguments,
            env={**process_environment, **environment},
            stdin=subprocess.DEVNULL,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    return run


def test_output_into_a_closed_pipe_ends_without_a_traceback(
    process_environment: dict[str, str],
) -> None:
    command = ["/bin/sh", "-c", '"$0" manage.py list_tenants | sleep 0', sys.executable]
    ran = subprocess.run(
        command, cwd=PROJECT, env=process_environment, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_a_tenants_life(manage: Callable[..., Ran]) -> None:
    created = manage("create_tenant", "acme", "--name", "Acme Inc.", "--domain", "acme.example")
    assert (created.status, created.err) == (0, "")
    tenant = Tenant.objects.get(slug="acme")
    assert created == Ran(0, f"created tenant acme ({tenant.id}) at acme.example\n", "")
    again = manage("create_tenant", "acme")
    assert again == Ran(2, "", "UsageError: tenant 'acme' exists already\n")

    listed = manage("list_tenants")
    assert (listed.status, listed.err) == (0, "")
    lines = [line.split(maxsplit=5) for line in listed.out.splitlines()]
    day = f"{tenant.created_at:%Y-%m-%d}"
    assert lines[0] == ["SLUG", "STATE", "DOMAINS", "CREATED", "ID", "NAME"]
    assert lines[1] == ["acme", "active", "acme.example", day, str(tenant.id), "Acme Inc."]

    person = manage("create_tenant_admin", "--tenant", "acme", "--username", "ada")
    first, second = person.out.splitlines()
    assert (person.status, person.err, first) == (0, "", "created user ada of tenant acme")
    with tenant_scope(tenant.id):
        assert User.objects.get(username="ada").check_password(second.removeprefix("password: "))

    get_redis_connection("default").set(f"{tenant.id}:memory", "Rosebud is a sledge.")
    assert manage("delete_tenant", "acme", "--yes") == Ran(0, "deleted tenant acme\n", "")
    if settings.EMBEDDED_DATABASE:
        files = [file for file in (services.home() / "valkey").rglob("*") if file.is_file()]
        assert files
        assert [file.name for file in files if b"Rosebud" in file.read_bytes()] == []
    assert not Tenant.objects.filter(slug="acme").exists()


def test_set_up_tenant_creates_missing_rows_and_prints_each_secret_once(
    manage: Callable[..., Ran],
) -> None:
    arguments = ("set_up_tenant", "acme", "--domain", "acme.example", "--agent", "ada")
    created = manage(*arguments)
    tenant = Tenant.objects.get(slug="acme")
    with tenant_scope(tenant.id):
        person, agent, key = User.objects.get(), Agent.objects.get(), ApiKey.objects.get()
    password, secret = re.findall(
        "^(?:password|API key, shown this once): (.+)$", created.out, re.M
    )
    assert created == Ran(
        0,
        f"created tenant acme ({tenant.id}) at acme.example\n"
        f"created user admin of tenant acme\npassword: {password}\n"
        f"created agent ada ({agent.id}) of tenant acme\n"
        f"API key, shown this once: {secret}\n",
        "",
    )
    assert (person.username, agent.name) == ("admin", "ada")

    again = manage(*arguments)
    assert again.status == 0
    assert again.out.splitlines() == [
        f"tenant acme has its {part} already" for part in ("admin", "agent", "API key")
    ]
    with tenant_scope(tenant.id):
        assert User.objects.get().password == person.password
        assert (Agent.objects.get(), ApiKey.objects.get()) == (agent, key)
    assert manage("delete_tenant", "acme", "--yes").status == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["create_tenant"], "the following arguments are required: slug"),
        (["create_tenant", "Acme"], "slug: Use lower-case letters, digits and inner hyphens"),
        (["create_tenant", "acme", "--size", "9"], "unrecognized arguments: --size 9"),
        (["create_tenant_admin", "--username", "ada"], "are required: --tenant"),
        (
            ["delete_tenant", "acme", "--yes"],
            "no tenant is called 'acme' (list_tenants shows them)",
        ),
        (["delete_tenant", "tenant-a"], "there is no terminal to confirm on: pass --yes"),
        (["migrate", "--parallel", "0"], "--parallel must be at least 1"),
        (["migrate", "--parallel", "many"], "argument --parallel: invalid int value: 'many'"),
        (["migrate", "--shared", "--tenant"], "not allowed with argument"),
    ],
)
def test_wrong_arguments_are_named_with_status_2(
    arguments: list[str],
    line: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO())
    command = load_command_class(get_commands()[arguments[0]], arguments[0])
    with pytest.raises(SystemExit) as ended:
        command.run_from_argv(["manage.py", *arguments])
    err = capsys.readouterr().err
    assert ended.value.code == 2
    assert line in err


def test_a_database_that_does_not_answer_is_one_line(manage: Callable[..., Ran]) -> None:
    ran = manage("list_tenants", DATABASE_URL="postgresql://konstruct_app@127.0.0.1:1/konstruct")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("CommandError: connection failed")
    assert ran.err.count("\n") == 1


def test_every_command_reports_errors_in_the_same_format() -> None:
    commands = {name: app for name, app in get_commands().items() if app in PROJECT_APPS}
    for name, app in commands.items():
        command = load_command_class(app, name)
        assert isinstance(command, KonstructCommand), name
    assert set(commands) >= {
        "migrate",
        "migrate_schemas",
        "create_tenant",
        "list_tenants",
        "delete_tenant",
        "create_tenant_admin",
    }


def test_the_commands_that_need_the_owner_exist() -> None:
    assert set(get_commands()) >= OWNER_COMMANDS


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: text)


def test_unconfirmed_deletion_deletes_nothing(
    tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, "yes")
    with pytest.raises(CommandError, match="not deleted"):
        call_command("delete_tenant", "tenant-a")
    assert Tenant.objects.get(slug="tenant-a").state == "active"
    assert Domain.objects.filter(domain="tenant-a.localhost").exists()


def admin_of(tenant: Tenant, **options: str) -> str:
    out = StringIO()
    call_command("create_tenant_admin", tenant=tenant.slug, username="ada", stdout=out, **options)
    return out.getvalue()


def test_an_admin_belongs_to_one_tenant(tenant_a: Tenant, tenant_b: Tenant) -> None:
    out = admin_of(tenant_a, password="correct horse battery", email="ada@example.org")
    assert out == "created user ada of tenant tenant-a\n"
    with tenant_scope(tenant_a.id):
        ada = User.objects.get()
        assert (ada.username, ada.email, ada.is_staff, ada.is_superuser) == (
            "ada",
            "ada@example.org",
            True,
            True,
        )
        assert ada.check_password("correct horse battery")
    with tenant_scope(tenant_b.id):
        assert not User.objects.exists()
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"password": "short"}, "This password is too short."),
        ({"password": ""}, "the password is empty"),
        ({"password": "correct horse battery", "email": "nowhere"}, "Enter a valid email address."),
    ],
)
def test_invalid_admin_is_refused(tenant_a: Tenant, options: dict[str, str], message: str) -> None:
    with pytest.raises(CommandError, match=message) as caught:
        admin_of(tenant_a, **options)
    assert caught.value.returncode == 2
    with tenant_scope(tenant_a.id):
        assert not User.objects.exists()


@pytest.mark.parametrize(("again", "works"), [("correct horse battery", True), ("typo", False)])
def test_an_admins_password_is_asked_for_at_a_terminal(
    tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch, again: str, works: bool
) -> None:
    answers = iter(["correct horse battery", again])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(create_tenant_admin, "getpass", lambda *prompt: next(answers))
    if works:
        assert admin_of(tenant_a) == "created user ada of tenant tenant-a\n"
    else:
        with pytest.raises(CommandError, match="the two passwords differ"):
            admin_of(tenant_a)
    with tenant_scope(tenant_a.id):
        assert User.objects.filter(username="ada").exists() == works


def test_a_tenant_without_a_schema_has_no_admins_yet(db: None) -> None:
    tenant = Tenant.objects.create(slug="begun", name="Begun")
    with pytest.raises(CommandError, match="tenant 'begun' is not provisioned yet"):
        admin_of(tenant, password="correct horse battery")


def test_the_same_admin_twice_is_refused(tenant_a: Tenant) -> None:
    admin_of(tenant_a, password="correct horse battery")
    with pytest.raises(CommandError, match="A user with that username already exists"):
        admin_of(tenant_a, password="correct horse battery")
