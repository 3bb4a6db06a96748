"""Throw-away tenants with a secret in their agent, message, window and fact."""

import secrets
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth import get_user_model

from konstruct.api.auth.keys import issue_key
from konstruct.orchestrator.agents import create_agent
from memory.conf import EMBEDDING_DIMENSIONS
from memory.conversations.short_term import append_turns
from memory.conversations.transcript import record_message
from memory.conversations.window_store import Turn
from memory.facts import LongTermMemory
from memory.models import MemoryEntry
from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.schemas import provisioning
from tenants.servers import servers

NAME = "Attacker and victim"
VECTOR = [1.0] + [0.0] * (EMBEDDING_DIMENSIONS - 1)
# All tenants use the same names: a wrong tenant id alone would find the rows of another tenant.
USER, THREAD = "maria", "t"


@dataclass(frozen=True)
class TenantFixture:
    """A tenant that attacks or is attacked, with the ids and credentials of its rows."""

    tenant: Tenant
    secret: str
    password: str
    agent_id: UUID
    key: str
    message_id: UUID
    fact_id: UUID

    @property
    def host(self) -> str:
        """The host name of the tenant."""
        return provisioning.default_domain(self.tenant.slug)


def make_tenants(number: int) -> list[Tenant]:
    """Create `number` tenants on each server. Needs the owner's role."""
    return [
        provisioning.create_tenant(slug=f"proof-{secrets.token_hex(6)}", name=NAME, server=server)
        for server in servers()
        for _ in range(number)
    ]


def delete_tenants() -> None:
    """Delete all throw-away tenants. Needs the owner's role."""
    for tenant in Tenant.objects.filter(name=NAME):
        provisioning.delete_tenant(tenant)


def populate(tenant: Tenant) -> TenantFixture:
    """Write the rows of a throw-away tenant, with the application's role."""
    secret, password = f"secret{secrets.token_hex(8)}", secrets.token_urlsafe()
    agent = create_agent(tenant_id=tenant.id, name="ada", system_prompt=secret)
    _, key = issue_key(tenant_id=tenant.id, name=secret)
    question, _ = record_message(
        tenant_id=tenant.id,
        agent_id=agent.id,
        user_id=USER,
        thread_id=THREAD,
        channel="rest",
        content=secret,
        role="user",
    )
    append_turns(tenant.id, agent.id, USER, [Turn.of(question)])
    fact = MemoryEntry(
        tenant_id=tenant.id, agent_id=agent.id, user_id=USER, content=secret, embedding=VECTOR
    )
    fact_id = LongTermMemory().store(fact)
    with tenant_scope(tenant.id):
        get_user_model().objects.create_superuser("eva", password=password)
    return TenantFixture(tenant, secret, password, agent.id, str(key), question.id, fact_id)
