"""Tables of a tenant's memory, with their querysets."""

from memory.models.attributes import MessageAttribute
from memory.models.conversations import (
    AgentUserModel,
    Conversation,
    ConversationItem,
    Message,
    PersonName,
    Role,
    WindowClear,
    server_now,
)
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
from memory.models.recall import (
    ConversationEmbedding,
    IndexedMessage,
    PendingEmbedding,
    Posting,
    PromptSource,
    RecallEvent,
    RecallExclusion,
    Scope,
)
