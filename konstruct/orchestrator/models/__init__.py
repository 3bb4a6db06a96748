"""Tables of the orchestrator: agents, replies, escalations, identities, language models."""

from konstruct.orchestrator.models.agents import (
    Agent,
    AgentVersion,
    FactReview,
    ModelTier,
    QuestionAnswer,
    SavedQuestion,
)
from konstruct.orchestrator.models.extraction import (
    HISTORY_IMPORTS,
    ExtractionCursor,
    ExtractionRun,
    HistoryImport,
    RunState,
)
from konstruct.orchestrator.models.identities import ChannelIdentity, HistoryMerge
from konstruct.orchestrator.models.language_models import (
    CallOutcome,
    DailyActivity,
    DailyUsage,
    LanguageModel,
    ModelCall,
    ModelKind,
)
from konstruct.orchestrator.models.replies import (
    AnswerOptions,
    Escalation,
    HeldFor,
    PendingReply,
    ToolCall,
)
