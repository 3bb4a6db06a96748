"""Throw-away tenants, each with one of everything, and a secret in all of it."""

import secrets
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django_redis import get_redis_connection
from langgraph.checkpoint.base import empty_checkpoint

from konstruct.api.auth.keys import issue_key
from konstruct.orchestrator.agents import create_agent
from memory.conf import EMBEDDING_DIMENSIONS
from memory.context import SessionStore
from memory.conversations.items import add_items
from memory.conversations.reading import Turn
from memory.conversations.short_term import append_turns
from memory.conversations.transcript import record_message
from memory.facts import LongTermMemory
from memory.long_term import store_embedding
from memory.models import ConversationItem, MemoryEntry
from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.redis_keys import idempotency_key
from tenants.schemas import provisioning
from tenants.servers import servers
from tenants.serving.claims import claim_workspace

NAME = "Throw-away tenant of prove_isolation"
VECTOR = [1.0] + [0.0] * (EMBEDDING_DIMENSIONS - 1)
# The same in all of them, so that a mistaken tenant alone would be enough to find another's.
USER, THREAD = "maria", "t"


@dataclass(frozen=True)
class Party:
    """A tenant that attacks, or is attacked; and what somebody could know of it."""

    tenant: Tenant
    secret: str
    password: str
    agent_id: UUID
    key: str
    message_id: UUID
    fact_id: UUID
    item_id: UUID
    workspace: str

    @property
    def host(self) -> str:
        """Where it is served."""
        return provisioning.default_domain(self.tenant.slug)


def remove_left_over() -> None:
    """Remove what a proof that was killed has left. As the owner."""
    for tenant in Tenant.objects.filter(name=NAME):
        provisioning.delete_tenant(tenant)


def make_tenants(number: int) -> list[Tenant]:
    """Make so many tenants on each server. As the owner."""
    return [
        provisioning.create_tenant(slug=f"proof-{secrets.token_hex(6)}", name=NAME, server=server)
        for server in servers()
        for _ in range(number)
    ]


def populate(tenant: Tenant) -> Party:
    """Fill a tenant, as the application does."""
    secret, password = f"secret{secrets.token_hex(8)}", secrets.token_urlsafe()
    agent = create_agent(tenant_id=tenant.id, name="ada", system_prompt=secret)
    _, key = issue_key(tenant_id=tenant.id, name=secret)
    common: dict[str, Any] = {
        "tenant_id": tenant.id,
        "agent_id": agent.id,
        "user_id": USER,
        "thread_id": THREAD,
        "channel": "rest",
        "content": secret,
    }
    asked, _ = record_message(**common, role="user")
    reply, _ = record_message(**common, role="assistant", in_reply_to=asked.id)
    append_turns(tenant.id, agent.id, USER, [Turn.of(asked), Turn.of(reply)])
    store_embedding(tenant.id, agent.id, USER, secret, "user", VECTOR)
    fact = MemoryEntry(
        tenant_id=tenant.id, agent_id=agent.id, user_id=USER, content=secret, embedding=VECTOR
    )
    fact_id = LongTermMemory().store(fact)
    _save_session(tenant.id, secret)
    with tenant_scope(tenant.id):
        get_user_model().objects.create_superuser("eva", password=password)
        claim_workspace("slack", workspace := f"T{secrets.token_hex(6).upper()}")
        add_items(agent.id, USER, THREAD, [({"said": secret}, asked.id)])
        item_id = ConversationItem.objects.get().pk
    get_redis_connection("default").set(idempotency_key(tenant.id, asked.id), secret)
    return Party(
        tenant, secret, password, agent.id, str(key), asked.id, fact_id, item_id, workspace
    )


def public_host() -> str:
    """The neutral host, at which the key decides."""
    return str(settings.PUBLIC_HOSTS[0])


def _save_session(tenant_id: UUID, secret: str) -> None:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"messages": [secret]}
    checkpoint["channel_versions"] = {"messages": "1"}
    SessionStore(tenant_id).checkpointer.put(
        {"configurable": {"thread_id": THREAD, "checkpoint_ns": ""}},
        checkpoint,
        {"run_id": secret},  # what is told of it as it is: values are told in base64
        {"messages": "1"},
    )
