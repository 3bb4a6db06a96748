"""Tables of a tenant's memory, with their querysets."""

from memory.models.attributes import MessageAttribute
from memory.models.conversations import (
    AgentUserModel,
    ConversationEmbedding,
    IndexedMessage,
    Message,
    PendingEmbedding,
    Posting,
    PromptSource,
    RecallEvent,
    Role,
    Scope,
    WindowClear,
    server_now,
)
from memory.models.exclusions import RecallExclusion
from memory.models.facts import (
    AuthorKind,
    FactAction,
    FactEvent,
    FactEvidence,
    FactKind,
    FactState,
    MemoryAttribute,
    MemoryEntry,
    Precision,
)
from memory.models.people import Conversation, ConversationItem, PersonName
