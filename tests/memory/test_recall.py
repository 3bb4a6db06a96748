"""Recall: what was said is found, by whom it was said, and nothing else is."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import transaction

from memory.indexing import index_messages
from memory.models import Message
from memory.policy import RecallPolicy
from memory.recall import recall
from memory.transcript import record_message
from tenants.context import tenant_scope
from tenants.models import Tenant

AGENT = UUID("0a000000-0000-4000-8000-000000000001")
START = datetime(2024, 3, 4, 9, tzinfo=UTC)
UNGATED = RecallPolicy(gate=False)


def say(
    tenant: Tenant,
    *texts: str,
    user: str = "ann",
    agent: UUID = AGENT,
    thread: str = "t",
    start: datetime = START,
    role: str = "user",
    name: str = "Ann",
) -> list[Message]:
    """Record and index turns, a minute apart."""
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
    with tenant_scope(tenant.id), transaction.atomic():
        index_messages(messages)
    return messages


def test_finds_the_message_that_answers(tenant_a: Tenant) -> None:
    messages = say(
        tenant_a,
        "My sister Zoe moved to Lisbon last spring.",
        "I had soup for lunch today.",
        "The train to work was late again.",
    )
    result = recall(tenant_a.id, AGENT, "ann", "Where did my sister move to?")
    assert result.hits[0].message_id == messages[0].id
