"""Throw-away tenants with a secret in each place that an attack reads."""

import secrets
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth import get_user_model
from django_redis import get_redis_connection

from konstruct.api.auth.keys import issue_key
from konstruct.orchestrator.agents import create_agent
from memory.conf import EMBEDDING_DIMENSIONS
from memory.conversations.short_term import append_turns
from memory.conversations.transcript import add_items, record_message
from memory.conversations.window_store import Turn
from memory.facts import LongTermMemory
from memory.long_term import store_embedding
from memory.models import ConversationItem, MemoryEntry
from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.redis_keys import idempotency_key
from tenants.schemas import provisioning
from tenants.serving import claim_workspace
from tests.konstruct.privacy.conftest import save_session

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
    item_id: int
    workspace: str

    @property
    def host(self) -> str:
        """The host name of the tenant."""
        return provisioning.default_domain(self.tenant.slug)


def populate(tenant: Tenant) -> TenantFixture:
    """Write the rows of a throw-away tenant, with the application's role."""
    secret, password = f"secret{secrets.token_hex(8)}", secrets.token_urlsafe()
    agent = create_agent(tenant_id=tenant.id, name="ada", system_prompt=secret)
    _, key = issue_key(tenant_id=tenant.id, name=secret)
    turn = {"tenant_id": tenant.id, "agent_id": agent.id, "user_id": USER, "thread_id": THREAD}
    turn |= {"channel": "rest", "content": secret}
    question, _ = record_message(**turn, role="user")
    record_message(**turn, role="assistant", in_reply_to=question.id)
    append_turns(tenant.id, agent.id, USER, [Turn.of(question)])
    store_embedding(tenant.id, agent.id, USER, secret, "user", VECTOR)
    save_session(tenant, THREAD, secret, run_id=secret)
    fact = MemoryEntry(
        tenant_id=tenant.id, agent_id=agent.id, user_id=USER, content=secret, embedding=VECTOR
    )
    fact_id = LongTermMemory().store(fact)
    workspace = f"T{secrets.token_hex(6).upper()}"
    with tenant_scope(tenant.id):
        get_user_model().objects.create_superuser("eva", password=password)
        claim_workspace("slack", workspace)
        add_items(agent.id, USER, THREAD, [({"said": secret}, question.id)])
        item_id = ConversationItem.objects.get().pk
    get_redis_connection("default").set(idempotency_key(tenant.id, question.id), secret)
    return TenantFixture(
        tenant, secret, password, agent.id, str(key), question.id, fact_id, item_id, workspace
    )
