"""Tables of a tenant's memory, with their querysets."""

from memory.models.attributes import MessageAttribute
from memory.models.conversations import (
    AgentUserModel,
    ConversationEmbedding,
    IndexedMessage,
    Message,
    PendingEmbedding,
    Posting,
    RecallEvent,
    Role,
    Scope,
    WindowClear,
    server_now,
)
from memory.models.facts import MemoryAttribute, MemoryEntry

__all__ = [
    "AgentUserModel",
    "ConversationEmbedding",
    "IndexedMessage",
    "MemoryAttribute",
    "MemoryEntry",
    "Message",
    "MessageAttribute",
    "PendingEmbedding",
    "Posting",
    "RecallEvent",
    "Role",
    "Scope",
    "WindowClear",
    "server_now",
]
