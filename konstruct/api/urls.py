"""URLs of the resources below /api/v1/."""

from django.urls import path

from konstruct.api.resources.agents.agents import AgentsView, AgentView
from konstruct.api.resources.agents.dry_runs import DryRunsView
from konstruct.api.resources.agents.questions import (
    QuestionAnswersView,
    QuestionRunView,
    QuestionsView,
    QuestionView,
)
from konstruct.api.resources.agents.versions import AgentRestorationView, AgentVersionsView
from konstruct.api.resources.memory.checkpoints import CheckpointsView, CheckpointWritesView
from konstruct.api.resources.memory.conversations import ConversationsView, TranscriptView
from konstruct.api.resources.memory.exclusions import ExclusionsView, ExclusionView
from konstruct.api.resources.memory.extraction_runs import (
    ApplicationView,
    ComparisonView,
    ExtractionRunsView,
    ExtractionRunView,
    ReplayView,
    RollBackView,
)
from konstruct.api.resources.memory.fact_review import (
    FactConfirmationView,
    FactEventsView,
    FactRejectionView,
    FactRepliesView,
    FactRestorationView,
    FactRetractionView,
)
from konstruct.api.resources.memory.facts import (
    FactBatchView,
    FactHistoryView,
    FactSearchView,
    FactsView,
    FactView,
)
from konstruct.api.resources.memory.items import ItemsView, ItemView
from konstruct.api.resources.memory.memories import MemorySearchView
from konstruct.api.resources.memory.recall_events import (
    RecallEventsView,
    RecallEventView,
    RecallMarkView,
)
from konstruct.api.resources.memory.reply_reviews import ReplyReviewsView
from konstruct.api.resources.memory.search import SearchView
from konstruct.api.resources.memory.sessions import SessionsView, SessionView
from konstruct.api.resources.memory.windows import WindowView
from konstruct.api.resources.memory.working_context import CompileView
from konstruct.api.resources.operations.escalations import (
    AssignmentView,
    EscalationsView,
    EscalationView,
    ResolutionView,
)
from konstruct.api.resources.operations.extractions import ExtractionRetryView, ExtractionsView
from konstruct.api.resources.operations.model_calls import ModelUsageView
from konstruct.api.resources.operations.monthly_usage import UsageOfMonthView
from konstruct.api.resources.operations.tool_calls import DecisionView, ToolCallsView, ToolCallView
from konstruct.api.resources.operations.usage import UsageByDayView, UsageView
from konstruct.api.resources.people.erasures import ErasuresView, ErasureView
from konstruct.api.resources.people.identities import IdentitiesView, IdentityView, LinkView
from konstruct.api.resources.people.timeline import TimelineView
from konstruct.api.resources.people.users import UsersView

urlpatterns = [
    path("agents/", AgentsView.as_view(), name="agents"),
    path("agents/<uuid:agent_id>/", AgentView.as_view(), name="agent"),
    path("agents/<uuid:agent_id>/dry-runs/", DryRunsView.as_view(), name="dry-runs"),
    path("agents/<uuid:agent_id>/questions/", QuestionsView.as_view(), name="questions"),
    path(
        "agents/<uuid:agent_id>/questions/answers/",
        QuestionAnswersView.as_view(),
        name="question-answers",
    ),
    path("agents/<uuid:agent_id>/questions/run/", QuestionRunView.as_view(), name="question-run"),
    path(
        "agents/<uuid:agent_id>/questions/<uuid:question_id>/",
        QuestionView.as_view(),
        name="question",
    ),
    path("agents/<uuid:agent_id>/versions/", AgentVersionsView.as_view(), name="agent-versions"),
    path(
        "agents/<uuid:agent_id>/versions/<int:number>/restore/",
        AgentRestorationView.as_view(),
        name="restore-agent",
    ),
    path("checkpoints/", CheckpointsView.as_view(), name="checkpoints"),
    path("checkpoints/writes/", CheckpointWritesView.as_view(), name="checkpoint-writes"),
    path("conversations/", ConversationsView.as_view(), name="conversations"),
    path("conversations/transcript/", TranscriptView.as_view(), name="transcript"),
    path("conversations/items/", ItemsView.as_view(), name="conversation-items"),
    path("conversations/items/<uuid:item_id>/", ItemView.as_view(), name="conversation-item"),
    path("context/compile/", CompileView.as_view(), name="compile-context"),
    path("erasures/", ErasuresView.as_view(), name="erasures"),
    path("erasures/<uuid:erasure_id>/", ErasureView.as_view(), name="erasure"),
    path("escalations/", EscalationsView.as_view(), name="escalations"),
    path("escalations/<uuid:escalation_id>/", EscalationView.as_view(), name="escalation"),
    path(
        "escalations/<uuid:escalation_id>/assignment/", AssignmentView.as_view(), name="assignment"
    ),
    path(
        "escalations/<uuid:escalation_id>/resolution/", ResolutionView.as_view(), name="resolution"
    ),
    path("extraction-runs/", ExtractionRunsView.as_view(), name="extraction-runs"),
    path("extraction-runs/<uuid:run_id>/", ExtractionRunView.as_view(), name="extraction-run"),
    path(
        "extraction-runs/<uuid:run_id>/apply/",
        ApplicationView.as_view(),
        name="apply-extraction-run",
    ),
    path(
        "extraction-runs/<uuid:run_id>/comparison/",
        ComparisonView.as_view(),
        name="compare-extraction-runs",
    ),
    path(
        "extraction-runs/<uuid:run_id>/replay/", ReplayView.as_view(), name="replay-extraction-run"
    ),
    path(
        "extraction-runs/<uuid:run_id>/roll-back/",
        RollBackView.as_view(),
        name="roll-back-extraction-run",
    ),
    path("extractions/", ExtractionsView.as_view(), name="extractions"),
    path(
        "extractions/<uuid:extraction_id>/retry/",
        ExtractionRetryView.as_view(),
        name="retry-extraction",
    ),
    path("facts/", FactsView.as_view(), name="facts"),
    path("facts/batch/", FactBatchView.as_view(), name="fact-batch"),
    path("facts/search/", FactSearchView.as_view(), name="search-facts"),
    path("facts/<uuid:memory_id>/", FactView.as_view(), name="fact"),
    path("facts/<uuid:memory_id>/confirm/", FactConfirmationView.as_view(), name="confirm-fact"),
    path("facts/<uuid:memory_id>/events/", FactEventsView.as_view(), name="fact-events"),
    path("facts/<uuid:memory_id>/history/", FactHistoryView.as_view(), name="fact-history"),
    path("facts/<uuid:memory_id>/reject/", FactRejectionView.as_view(), name="reject-fact"),
    path("facts/<uuid:memory_id>/replies/", FactRepliesView.as_view(), name="fact-replies"),
    path("facts/<uuid:memory_id>/restore/", FactRestorationView.as_view(), name="restore-fact"),
    path("facts/<uuid:memory_id>/retract/", FactRetractionView.as_view(), name="retract-fact"),
    path("identities/", IdentitiesView.as_view(), name="identities"),
    path("identities/<uuid:identity_id>/", IdentityView.as_view(), name="identity"),
    path("identities/<uuid:identity_id>/link/", LinkView.as_view(), name="identity-link"),
    path("search/", SearchView.as_view(), name="search-everything"),
    path("sessions/", SessionsView.as_view(), name="sessions"),
    path("sessions/<path:thread_id>/", SessionView.as_view(), name="session"),
    path("memories/search/", MemorySearchView.as_view(), name="search-memories"),
    path("messages/<uuid:message_id>/exclusions/", ExclusionsView.as_view(), name="exclusions"),
    path(
        "messages/<uuid:message_id>/exclusions/<uuid:exclusion_id>/",
        ExclusionView.as_view(),
        name="exclusion",
    ),
    path("recall-events/", RecallEventsView.as_view(), name="recall-events"),
    path("recall-events/<uuid:event_id>/", RecallEventView.as_view(), name="recall-event"),
    path("reply-reviews/", ReplyReviewsView.as_view(), name="reply-reviews"),
    path(
        "recall-events/<uuid:event_id>/marks/<uuid:message_id>/",
        RecallMarkView.as_view(),
        name="recall-mark",
    ),
    path("tool-calls/", ToolCallsView.as_view(), name="tool-calls"),
    path("tool-calls/<uuid:call_id>/", ToolCallView.as_view(), name="tool-call"),
    path("tool-calls/<uuid:call_id>/decision/", DecisionView.as_view(), name="decision"),
    path("usage/", UsageView.as_view(), name="usage"),
    path("usage/days/", UsageByDayView.as_view(), name="usage-by-day"),
    path("usage/models/", ModelUsageView.as_view(), name="model-usage"),
    path("usage/month/", UsageOfMonthView.as_view(), name="usage-of-month"),
    path("users/", UsersView.as_view(), name="users"),
    path("users/<path:user_id>/timeline/", TimelineView.as_view(), name="timeline"),
    path("windows/", WindowView.as_view(), name="windows"),
]
