"""Copies of turns for another agent that has answered in an agent's thread.

A scope of memory belongs to one agent and one user. If an agent has answered in another's thread,
the exchange becomes its own memory as a copy, of the channel `handover`: recall finds it, the
agent's window has it, and it is erased, moved and exported like any message.
"""

from collections.abc import Iterable
from uuid import UUID, uuid5

from memory.conf import HANDOVER_CHANNEL
from memory.conversations import embedding_queue
from memory.conversations.metadata import write_attributes
from memory.models import Message
from tenants import transaction


def copy_id(message_id: UUID | str, agent_id: UUID) -> UUID:
    """Return the id of an agent's copy of a message."""
    return uuid5(agent_id, str(message_id))


def copy_for_agent(message_ids: Iterable[UUID], agent_id: UUID) -> list[Message]:
    """Copy messages of the current tenant for an agent, each once; return the new copies.

    They are queued for embedding like every message. Call it in the transaction that makes the
    originals count.
    """
    originals = Message.objects.filter(pk__in=list(message_ids)).order_by("number")
    with transaction.atomic():
        copies = [_copy(original, agent_id) for original in originals]
        existing = set(
            Message.objects.filter(pk__in=[copy.pk for copy in copies]).values_list("pk", flat=True)
        )
        new = [copy for copy in copies if copy.pk not in existing]
        Message.objects.bulk_create(new)
        write_attributes(new)
        embedding_queue.enqueue([copy.pk for copy in new])
    return new


def _copy(original: Message, agent_id: UUID) -> Message:
    return Message(
        id=copy_id(original.pk, agent_id),
        agent_id=agent_id,
        user_id=original.user_id,
        thread_id=original.thread_id,
        channel=HANDOVER_CHANNEL,
        role=original.role,
        name=original.name,
        content=original.content,
        created_at=original.created_at,
        external_id=f"{HANDOVER_CHANNEL}:{original.pk}",
        answered_by_id=original.answered_by_id,
        metadata=original.metadata,
    )
