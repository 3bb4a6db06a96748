"""Fixtures of trust: a tenant in which two people have talked, as the real pipeline does it."""

from collections.abc import Callable

import pytest

from konstruct.orchestrator import pipeline
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from konstruct.trust.ledger import verifying
from memory.indexing import outbox
from memory.models import Message
from tenants.context import tenant_scope
from tenants.models import Tenant


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is in work here: what looks wrong need not be looked at later."""
    monkeypatch.setattr(verifying, "LOOK_AGAIN_SECONDS", 0)


@pytest.fixture
def agent(tenant_a: Tenant) -> Agent:
    with tenant_scope(tenant_a.id):
        return Agent.objects.create(name="ada")


@pytest.fixture
def talk(tenant_a: Tenant, agent: Agent) -> Callable[..., Message]:
    """Send a message through the whole pipeline."""

    def talk(content: str, user_id: str = "maria", thread_id: str = "t", **given: str) -> Message:
        agent_id = given.pop("agent_id", agent.id)
        incoming = Incoming(agent_id, user_id, thread_id, "rest", content, **given)
        message, _ = accept(incoming, tenant_id=tenant_a.id)
        pipeline.handle(tenant_id=tenant_a.id, message_id=message.id)
        outbox.drain(tenant_a.id)
        return message

    return talk
