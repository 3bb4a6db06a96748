"""Fixtures of backups: a journal of their own, tenants in which people have talked, commands."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from konstruct.consistency import verifying
from konstruct.orchestrator.models import Agent
from memory.models import Message
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests import database
from tests.konstruct.privacy.conftest import said_in


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is in work here: what looks wrong need not be looked at later."""
    monkeypatch.setattr(verifying, "SECOND_RUN_SECONDS", 0)


@pytest.fixture(autouse=True)
def journal_file(settings: Any, tmp_path: Path) -> Path:
    """An empty journal."""
    path = tmp_path / "erasures.jsonl"
    path.touch()
    settings.ERASURE_JOURNAL = str(path)
    return path


@pytest.fixture
def talk() -> Callable[..., Message]:
    """Send a message to the agent of a tenant through the whole pipeline."""

    def said(tenant: Tenant, content: str, user_id: str = "maria", **given: Any) -> Message:
        with tenant_scope(tenant.id):
            agent, _ = Agent.objects.get_or_create(name="ada")
        return said_in(tenant, agent, content, user_id, **given)

    return said


def run(command: str, *arguments: object) -> str:
    """Run a command as the owner, and return what it prints."""
    out = io.StringIO()
    with database.as_owner():
        call_command(command, *map(str, arguments), stdout=out, stderr=out)
    return out.getvalue()


@pytest.fixture
def backup(tmp_path: Path) -> Callable[..., Path]:
    """Make a backup, and return its folder."""

    def made(*arguments: object) -> Path:
        said = run("backup", tmp_path / "backups", *arguments)
        return Path(said.partition(":")[0])

    return made
