"""Rows of the victims that only the tests attack: session, items, workspace, vector and reply."""

import secrets
from uuid import UUID

from django_redis import get_redis_connection
from langgraph.checkpoint.base import empty_checkpoint

from memory.context import SessionStore
from memory.conversations.items import add_items
from memory.conversations.transcript import record_message
from memory.long_term import store_embedding
from memory.models import ConversationItem
from tenants.context import tenant_scope
from tenants.redis_keys import idempotency_key
from tenants.serving import claim_workspace
from tests.konstruct.isolation.fixtures import THREAD, USER, VECTOR, TenantFixture

# The item and the Slack workspace of each tenant, by its id.
items: dict[UUID, int] = {}
workspaces: dict[UUID, str] = {}


def save_session(tenant_id: UUID, text: str) -> None:
    """Save a session of one message."""
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"messages": [text]}
    checkpoint["channel_versions"] = {"messages": "1"}
    SessionStore(tenant_id).checkpointer.put(
        {"configurable": {"thread_id": THREAD, "checkpoint_ns": ""}},
        checkpoint,
        {"run_id": text},
        {"messages": "1"},
    )


def populate_more(tenant: TenantFixture) -> None:
    tenant_id = tenant.tenant.id
    record_message(
        tenant_id=tenant_id,
        agent_id=tenant.agent_id,
        user_id=USER,
        thread_id=THREAD,
        channel="rest",
        content=tenant.secret,
        role="assistant",
        in_reply_to=tenant.message_id,
    )
    store_embedding(tenant_id, tenant.agent_id, USER, tenant.secret, "user", VECTOR)
    save_session(tenant_id, tenant.secret)
    with tenant_scope(tenant_id):
        workspaces[tenant_id] = f"T{secrets.token_hex(6).upper()}"
        claim_workspace("slack", workspaces[tenant_id])
        add_items(tenant.agent_id, USER, THREAD, [({"said": tenant.secret}, tenant.message_id)])
        items[tenant_id] = ConversationItem.objects.get().pk
    get_redis_connection("default").set(
        idempotency_key(tenant_id, tenant.message_id), tenant.secret
    )
