"""Record and index messages in tests, as the outbox does."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from memory.conversations.transcript import record_message
from memory.indexing import index_messages
from memory.models import Message
from tenants import transaction
from tenants.context import tenant_scope
from tenants.models import Tenant

AGENT = UUID("0a000000-0000-4000-8000-000000000001")
START = datetime(2024, 3, 4, 9, tzinfo=UTC)


def add_messages(
    tenant: Tenant,
    *texts: str,
    user: str = "ann",
    agent: UUID = AGENT,
    thread: str = "t",
    start: datetime = START,
    role: str = "user",
    name: str = "",
    index: bool = True,
) -> list[Message]:
    """Record turns of one speaker, a minute apart."""
    messages = [
        record_message(
            tenant_id=tenant.id,
            agent_id=agent,
            user_id=user,
            thread_id=thread,
            channel="rest",
            role=role,
            name=name,
            content=text,
            created_at=start + timedelta(minutes=minute),
        )[0]
        for minute, text in enumerate(texts)
    ]
    if index:
        with tenant_scope(tenant.id), transaction.atomic():
            index_messages(messages)
    return messages
