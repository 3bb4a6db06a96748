"""Fixtures of backups: a separate journal, tenants with conversations, and commands."""

import io
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from konstruct.local.services import binaries
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import Agent
from konstruct.privacy import jobs
from memory.models import Message
from tenants.audit.access_log import Actor
from tenants.context import tenant_scope
from tenants.exceptions import KonstructError
from tenants.models import Tenant
from tests import database
from tests.konstruct.conftest import SendMessage
from tests.konstruct.privacy.conftest import no_second_check, send_in_pipeline  # noqa: F401

Backup = Callable[..., Path]

BY = Actor.operator("test")


@pytest.fixture(autouse=True)
def journal_file(settings: Any, tmp_path: Path) -> Path:
    """An empty journal."""
    path = tmp_path / "erasures.jsonl"
    path.touch()
    settings.ERASURE_JOURNAL = str(path)
    return path


@pytest.fixture
def send_message() -> SendMessage:
    """Send a message to the agent of a tenant through the whole pipeline."""

    def send(tenant: Tenant, content: str, user_id: str = "maria", **given: Any) -> Message:
        with tenant_scope(tenant.id):
            agent, _ = Agent.objects.get_or_create(name="ada")
        return send_in_pipeline(tenant, agent, content, user_id, **given)

    return send


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
        output = run("backup", tmp_path / "backups", *arguments)
        return Path(output.partition(":")[0])

    return made


@pytest.fixture
def backup_with_anna(send_message: SendMessage, backup: Backup) -> Callable[[Tenant], Path]:
    """Send messages of anna and ben, back up the tenant, erase anna, and return the backup."""

    def made(tenant: Tenant) -> Path:
        send_message(tenant, "I am anna.", "anna")
        send_message(tenant, "I am ben.", "ben")
        folder = backup("--tenant", tenant.slug)
        with tenant_scope(tenant.id):
            request_erasure("anna", by=BY)
        owner_works()
        return folder

    return made


@contextmanager
def without_room() -> Iterator[None]:
    """Fail the command for lack of space for the schema of a backup."""
    no_room = mock.patch(
        "tenants.postgres_tools.restore_schema", side_effect=KonstructError("no room")
    )
    with no_room, pytest.raises(CommandError, match="no room"):
        yield


def owner_works() -> None:
    """Run the jobs of the owner worker."""
    with database.as_owner():
        for job in jobs.JOBS:
            job.run_due()


def texts(tenant: Tenant) -> list[str]:
    with tenant_scope(tenant.id):
        return list(Message.objects.order_by("number").values_list("content", flat=True))


def dumped(tenant: Tenant) -> str:
    """Return the complete schema of a tenant as text, read by a superuser."""
    url = database.url_of("superuser")
    command = [binaries() / "pg_dump", "--schema", tenant.schema_name, "--dbname", url]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
