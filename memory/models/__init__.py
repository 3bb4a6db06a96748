"""Tables of a tenant's memory, with their querysets."""

from memory.models.attributes import MessageAttribute
from memory.models.conversations import (
    AgentUserModel,
    Conversation,
    ConversationItem,
    Message,
    MessageQuerySet,
    PersonName,
    Role,
    WindowClear,
    server_now,
)
from memory.models.facts import (
    SYSTEM,
    AuthorKind,
    FactAction,
    FactChanges,
    FactEvent,
    FactEvidence,
    FactKind,
    FactState,
    MemoryAttribute,
    MemoryEntry,
    MemoryEntryQuerySet,
    Precision,
    server_clock,
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
    scope_number,
    session_number,
)
