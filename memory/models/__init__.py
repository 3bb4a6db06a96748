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
from memory.models.items import ConversationItem

__all__ = [
    "AgentUserModel",
    "ConversationEmbedding",
    "ConversationItem",
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
