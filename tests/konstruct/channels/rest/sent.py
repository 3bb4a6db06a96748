"""Read the rows of a sent message, create its reply, and read the fields of a problem document."""

from typing import Any

from konstruct.orchestrator import replies
from konstruct.orchestrator.models import PendingReply
from memory.conversations.transcript import record_message
from memory.models import Message, PendingEmbedding
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program


def rows(program: Program) -> tuple[int, int, int]:
    """Count the rows of a message."""
    with tenant_scope(program.tenant.id):
        return (
            Message.objects.count(),
            PendingReply.objects.count(),
            PendingEmbedding.objects.count(),
        )


def answer(program: Program, message_id: str, content: str = "Hi there") -> Message:
    """Answer the message as a worker does."""
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
        )
        replies.REPLIES.finish(message.id)
    return reply


def refused_fields(response: Any) -> list[str]:
    """Return the fields that a problem document names."""
    assert response.headers["Content-Type"] == "application/problem+json"
    return [error["field"] for error in response.json()["errors"]]
