"""Commands as an operator runs them: their output, create_agent and create_api_key."""

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.utils import timezone

from konstruct.api.auth.authentication import look_up_key
from konstruct.api.auth.keys import parse_key
from konstruct.api.models import ApiKey
from konstruct.orchestrator.models import Agent
from tenants.context import public_scope, tenant_scope
from tenants.models import Tenant
from tests.konstruct.running import PROJECT


def test_output_of_a_command_is_in_its_log_at_once(
    environment_of_processes: dict[str, str],
) -> None:
    environment = {**environment_of_processes, "PYTHONUNBUFFERED": ""}
    code = "import os; print('up'); os._exit(0)"  # buffered output would be lost
    command = [sys.executable, "manage.py", "shell", "--no-imports", "--command", code]
    run = subprocess.run(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, check=True)
    assert run.stdout == b"up\n"


def test_create_agent_stores_the_given_values(tenant_a: Tenant, run: Callable[..., str]) -> None:
    out = run(
        "create_agent", "--tenant", "tenant-a", "--name", "ada",
        "--system-prompt", "Help.", "--identity", "You are Ada.", "--persona", "Brief.",
        "--model", "small", "--model-tier", "reasoning",
    )  # fmt: skip
    with tenant_scope(tenant_a.id):
        agent = Agent.objects.get()
    assert out == f"created agent ada ({agent.id}) of tenant tenant-a\n"
    assert (agent.system_prompt, agent.identity, agent.persona) == (
        "Help.",
        "You are Ada.",
        "Brief.",
    )
    assert (agent.model, agent.model_tier) == ("small", "reasoning")


def test_create_api_key_prints_the_key_alone(tenant_a: Tenant, run: Callable[..., str]) -> None:
    out = run("create_api_key", "--tenant", "tenant-a", "--name", "billing")
    key = parse_key(out.removesuffix("\n"))
    assert key is not None
    with tenant_scope(tenant_a.id):
        assert look_up_key(key).key == ApiKey.objects.get(name="billing")


def test_clearsessions_removes_expired_sessions_of_every_tenant(
    tenant_a: Tenant, tenant_b: Tenant
) -> None:
    def store(expires: timedelta) -> SessionStore:
        session = SessionStore()
        session.set_expiry(timezone.now() + expires)
        session.create()
        return session

    def sessions() -> int:
        count: int = Session.objects.count()
        return count

    for place in (tenant_scope(tenant_a.id), tenant_scope(tenant_b.id), public_scope()):
        with place:
            store(timedelta(days=-1))
            store(timedelta(days=1))
    call_command("clearsessions")
    for place in (tenant_scope(tenant_a.id), tenant_scope(tenant_b.id), public_scope()):
        with place:
            assert sessions() == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create_agent"], "required: --tenant, --name"),
        (["create_agent", "--tenant", "tenant-a"], "required: --name"),
        (["create_agent", "--tenant", "nobody", "--name", "ada"], "no tenant is called 'nobody'"),
        (
            ["create_agent", "--tenant", "tenant-a", "--name", ""],
            "name: This field cannot be blank",
        ),
        (
            ["create_agent", "--tenant", "tenant-a", "--name", "a", "--model-tier", "slow"],
            "invalid choice: 'slow'",
        ),
        (["create_api_key", "--name", "x"], "required: --tenant"),
        (["create_api_key", "--tenant", "nobody", "--name", "x"], "no tenant is called 'nobody'"),
        (["create_api_key", "--tenant", "tenant-a", "--name", ""], "name: This field cannot be"),
        (["create_api_key", "--tenant", "tenant-a", "--name", "x", "--scope", "y"], "--scope"),
        (["create_api_key", "--tenant", "tenant-a", "--name", "x", "--agent", "y"], "No agent"),
        (["create_api_key", "--tenant", "tenant-a", "--name", "x", "--user", ""], "user_id: "),
        (["create_api_key", "--tenant", "tenant-a", "--name", "x", "--days", "0"], "--days"),
        (["create_api_key", "--tenant", "tenant-a", "--name", "x", "--days", "9" * 12], "--days"),
    ],
)
def test_wrong_arguments_are_named(tenant_a: Tenant, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message) as caught:
        call_command(*arguments)
    assert "\n" not in str(caught.value)
    with tenant_scope(tenant_a.id):
        assert not Agent.objects.exists()
        assert not ApiKey.objects.exists()
