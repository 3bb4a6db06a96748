"""Something to read: a tenant with two agents, three users and what they said."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from konstruct.orchestrator import outbox as replies
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.history import import_history
from konstruct.orchestrator.models import Agent
from memory import outbox as embeddings
from memory.facts import LongTermMemory
from memory.models import MemoryEntry, Message
from memory.transcript import record_message
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

TRACE = {
    "query": "What do I drink?",
    "hits": [{"content": "I drink tea.", "score": 2.5}],
    "cut": [],
    "facts": [],
    "injected": ["[then] user: I drink tea."],
    "abstained": False,
    "embedding_model": "test",
    "milliseconds": 3.5,
}


def answer(program: Program, message_id: str | UUID, content: str = "Hi there") -> Message:
    """Let a message be answered, as a worker does."""
    with tenant_scope(program.tenant.id):
        message = Message.objects.get(pk=message_id)
        reply, _ = record_message(
            tenant_id=program.tenant.id,
            agent_id=message.agent_id,
            user_id=message.user_id,
            thread_id=message.thread_id,
            channel=message.channel,
            role="assistant",
            content=content,
            in_reply_to=message.id,
            recall_trace=TRACE,
        )
        replies.finish(message.id)
    return reply


@dataclass
class Said:
    """What there is to read."""

    program: Program
    other: Agent
    sent: dict[str, Any]
    reply: Message


def said_something(program: Program) -> Said:
    """Let maria talk with ada and with bo, and have a history of theo, and a fact about vera."""
    other = create_agent(tenant_id=program.tenant.id, name="bo", system_prompt="You are Bo.")
    sent = program.send("What do I drink?", thread_id="t1", name="Maria").json()
    reply = answer(program, sent["id"], "Tea.")
    program.send("Good morning", agent="bo", thread_id="t2")
    lines = [
        {
            "external_id": f"e{number}",
            "agent": "ada",
            "user_id": "theo",
            "thread_id": "old/thread?",
            "role": ("user", "assistant")[number % 2],
            "content": f"Line {number} of the history.",
            "created_at": f"2025-03-14T09:{number // 2:02}:00Z",
        }
        for number in range(4)
    ]
    with tenant_scope(program.tenant.id):
        import_history(lines, tenant_id=program.tenant.id)
        LongTermMemory().store(
            MemoryEntry(tenant_id=program.tenant.id, user_id="vera", content="Vera likes tea.")
        )
    embeddings.drain(program.tenant.id)
    return Said(program, other, sent, reply)
