"""Fixtures of privacy: a tenant with conversations of two people, from the real pipeline."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from konstruct import consistency
from konstruct.orchestrator.models import Agent
from konstruct.privacy.archive.exporting import export_memory
from memory import indexing
from memory.context import SessionStore
from memory.models import Message
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests import database
from tests.konstruct import sending
from tests.konstruct.conftest import SendMessage
from tests.konstruct.running import run_python


def tool(name: str, *arguments: str | Path) -> str:
    """Run one of Postgres' programs as an operator does."""
    ran = run_python("-m", "konstruct.local.embedded", "tool", name, *map(str, arguments))
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(autouse=True)
def no_second_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report findings without a second check, because no job runs in these tests."""
    monkeypatch.setattr(consistency, "SECOND_RUN_SECONDS", 0)


@pytest.fixture
def agent(tenant_a: Tenant) -> Agent:
    with tenant_scope(tenant_a.id):
        return Agent.objects.create(name="ada")


@pytest.fixture
def send_message(tenant_a: Tenant, agent: Agent) -> SendMessage:
    """Send a message through the whole pipeline."""
    return partial(send_in_pipeline, tenant_a, agent)


def send_in_pipeline(
    tenant: Tenant,
    agent: Agent,
    content: str,
    user_id: str = "maria",
    thread_id: str = "t",
    **given: Any,
) -> Message:
    """Send a message through the whole pipeline."""
    message = sending.send_message(
        tenant, agent, content, user_id=user_id, thread_id=thread_id, **given
    )
    indexing.drain(tenant.id)
    return message


def save_session(tenant: Tenant, thread_id: str, content: str, **metadata: Any) -> None:
    """Save a session of one message, as the graph of an agent does."""
    from langgraph.checkpoint.base import empty_checkpoint

    saver = SessionStore(tenant.id).checkpointer
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"messages": [content]}
    checkpoint["channel_versions"] = {"messages": "1"}
    config: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    config = saver.put(config, checkpoint, metadata, {"messages": "1"})
    saver.put_writes(config, [("messages", content)], "task")


@pytest.fixture(scope="module")
def exported(
    shared_tenants: dict[str, Tenant],
    django_db_blocker: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> bytes:
    """An archive of two messages and a session, which tests of a module can modify.

    Its tenant is empty again.
    """
    tenant, path = shared_tenants["tenant-a"], tmp_path_factory.mktemp("exported") / "a.db"
    with django_db_blocker.unblock():
        with tenant_scope(tenant.id):
            agent = Agent.objects.create(name="ada")
        send_in_pipeline(tenant, agent, "I live in Lisbon.")
        save_session(tenant, "thread", "Hello")
        export_memory(tenant, path)
        database.remove_committed_rows()
    return path.read_bytes()


@pytest.fixture
def archive(exported: bytes, tmp_path: Path) -> Path:
    """An archive of two messages and a session."""
    path = tmp_path / "a.db"
    path.write_bytes(exported)
    return path
