"""URLs of the resources below /api/v1/."""

from django.urls import path

from konstruct.api.agents import AgentsView, AgentView
from konstruct.api.context import CompileView
from konstruct.api.conversations import ConversationsView, TranscriptView
from konstruct.api.erasures import ErasuresView, ErasureView
from konstruct.api.facts import FactHistoryView, FactSearchView, FactsView, FactView
from konstruct.api.memories import MemorySearchView
from konstruct.api.recall_events import RecallEventsView, RecallEventView
from konstruct.api.sessions import SessionsView, SessionView
from konstruct.api.usage import UsageView
from konstruct.api.users import UsersView
from konstruct.api.windows import WindowView

urlpatterns = [
    path("agents/", AgentsView.as_view(), name="agents"),
    path("agents/<uuid:agent_id>/", AgentView.as_view(), name="agent"),
    path("conversations/", ConversationsView.as_view(), name="conversations"),
    path("conversations/transcript/", TranscriptView.as_view(), name="transcript"),
    path("context/compile/", CompileView.as_view(), name="compile-context"),
    path("erasures/", ErasuresView.as_view(), name="erasures"),
    path("erasures/<uuid:erasure_id>/", ErasureView.as_view(), name="erasure"),
    path("facts/", FactsView.as_view(), name="facts"),
    path("facts/search/", FactSearchView.as_view(), name="search-facts"),
    path("facts/<uuid:memory_id>/", FactView.as_view(), name="fact"),
    path("facts/<uuid:memory_id>/history/", FactHistoryView.as_view(), name="fact-history"),
    path("sessions/", SessionsView.as_view(), name="sessions"),
    path("sessions/<path:thread_id>/", SessionView.as_view(), name="session"),
    path("memories/search/", MemorySearchView.as_view(), name="search-memories"),
    path("recall-events/", RecallEventsView.as_view(), name="recall-events"),
    path("recall-events/<uuid:event_id>/", RecallEventView.as_view(), name="recall-event"),
    path("usage/", UsageView.as_view(), name="usage"),
    path("users/", UsersView.as_view(), name="users"),
    path("windows/", WindowView.as_view(), name="windows"),
]
