"""Tables of the orchestrator: agents, replies, escalations, identities, language models."""

from .agents import Agent, AgentVersion, FactReview, ModelTier, QuestionAnswer, SavedQuestion
from .extraction import HISTORY_IMPORTS, ExtractionCursor, ExtractionRun, HistoryImport, RunState
from .identities import ChannelIdentity, HistoryMerge
from .language_models import (
    CallOutcome,
    DailyActivity,
    DailyUsage,
    LanguageModel,
    ModelCall,
    ModelKind,
)
from .replies import AnswerOptions, Escalation, HeldFor, PendingReply, ToolCall
