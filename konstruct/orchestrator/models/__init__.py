"""Tables of the orchestrator: agents, replies, escalations, identities, tool calls."""

from konstruct.orchestrator.models.agents import (
    Agent,
    AgentVersion,
    FactReview,
    HeldFor,
    ModelTier,
    PendingReply,
)
from konstruct.orchestrator.models.escalations import Escalation
from konstruct.orchestrator.models.extraction import (
    CallOutcome,
    ExtractionCursor,
    ExtractionRun,
    ModelCall,
    RunState,
)
from konstruct.orchestrator.models.history_imports import HISTORY_IMPORTS, HistoryImport
from konstruct.orchestrator.models.identities import ChannelIdentity, HistoryMerge
from konstruct.orchestrator.models.language_models import LanguageModel, ModelKind
from konstruct.orchestrator.models.saved_questions import QuestionAnswer, SavedQuestion
from konstruct.orchestrator.models.tool_calls import AnswerOptions, ToolCall
from konstruct.orchestrator.models.usage import DailyActivity, DailyUsage
