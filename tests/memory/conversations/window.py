"""Reading the window of a user in tests."""

from uuid import UUID

from memory.conversations.short_term import get_recent_messages
from tenants.redis_keys import memory_short_key

AGENT = UUID("0a9e0000-0000-4000-8000-000000000001")
USER = "U024BE7LH"


def contents(tenant_id, user=USER, agent=AGENT, n=20):
    return [turn["content"] for turn in get_recent_messages(tenant_id, agent, user, n)]


def key_of(tenant_id, user=USER, agent=AGENT):
    return memory_short_key(tenant_id, agent, user)
