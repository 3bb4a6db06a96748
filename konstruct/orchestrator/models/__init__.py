"""Tables of the orchestrator: agents, replies, escalations, identities, tool calls."""

from konstruct.orchestrator.models.activity import DailyActivity
from konstruct.orchestrator.models.agent_versions import AgentVersion
from konstruct.orchestrator.models.agents import (
    Agent,
    FactReview,
    HeldFor,
    ModelTier,
    PendingReply,
    RecallMode,
    RecallPreset,
)
from konstruct.orchestrator.models.answer_options import AnswerOptions
from konstruct.orchestrator.models.escalations import Escalation
from konstruct.orchestrator.models.extraction import (
    CallOutcome,
    ExtractionCursor,
    ExtractionRun,
    ModelCall,
    RunState,
)
from konstruct.orchestrator.models.identities import ChannelIdentity, HistoryMerge
from konstruct.orchestrator.models.notifications import (
    Destination,
    Event,
    Notification,
    NotificationRecipient,
)
from konstruct.orchestrator.models.saved_questions import QuestionAnswer, SavedQuestion
from konstruct.orchestrator.models.time_zones import TeamTimeZone
from konstruct.orchestrator.models.tool_calls import ToolCall
from konstruct.orchestrator.models.usage import DailyUsage

__all__ = [
    "Agent",
    "AgentVersion",
    "AnswerOptions",
    "CallOutcome",
    "ChannelIdentity",
    "DailyActivity",
    "DailyUsage",
    "Destination",
    "Escalation",
    "Event",
    "ExtractionCursor",
    "ExtractionRun",
    "FactReview",
    "HeldFor",
    "HistoryMerge",
    "ModelCall",
    "ModelTier",
    "Notification",
    "NotificationRecipient",
    "PendingReply",
    "QuestionAnswer",
    "RecallMode",
    "RecallPreset",
    "ReplyMark",
    "RunState",
    "SavedQuestion",
    "TeamTimeZone",
    "ToolCall",
]
