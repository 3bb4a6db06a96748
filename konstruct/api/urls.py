"""URLs of the resources below /api/v1/."""

from typing import Any

from django.urls import path
from rest_framework.routers import SimpleRouter

from konstruct.api.resources.agents import agents, dry_runs, language_models
from konstruct.api.resources.memory import (
    conversations,
    exclusions,
    extraction_runs,
    facts,
    imports,
    items,
    recall_events,
    search,
    sessions,
    working_context,
)
from konstruct.api.resources.operations import api_keys, escalations, tool_calls, usage
from konstruct.api.resources.people import erasures, identities, users

router = SimpleRouter(use_regex_path=False)
for prefix, viewset, basename in (
    ("agents", agents.AgentViewSet, "agent"),
    ("agents/<uuid:agent_id>/versions", agents.AgentVersionViewSet, "agent-version"),
    ("agents/<uuid:agent_id>/dry-runs", dry_runs.DryRunViewSet, "dry-run"),
    ("agents/<uuid:agent_id>/questions", dry_runs.QuestionViewSet, "question"),
    ("api-keys", api_keys.ApiKeyViewSet, "api-key"),
    ("context", working_context.ContextViewSet, "context"),
    ("conversations", conversations.ConversationViewSet, "conversation"),
    ("erasures", erasures.ErasureViewSet, "erasure"),
    ("escalations", escalations.EscalationViewSet, "escalation"),
    ("extraction-runs", extraction_runs.ExtractionRunViewSet, "extraction-run"),
    ("extractions", extraction_runs.ExtractionViewSet, "extraction"),
    ("facts", facts.FactViewSet, "fact"),
    ("imports", imports.HistoryImportViewSet, "history-import"),
    ("identities", identities.IdentityViewSet, "identity"),
    ("language-models", language_models.LanguageModelViewSet, "language-model"),
    ("memories", search.MemoryViewSet, "memory"),
    ("messages/<uuid:message_id>/exclusions", exclusions.ExclusionViewSet, "exclusion"),
    ("recall-events", recall_events.RecallEventViewSet, "recall-event"),
    ("sessions", sessions.SessionViewSet, "session"),
    ("tool-calls", tool_calls.ToolCallViewSet, "tool-call"),
    ("usage", usage.UsageByDayViewSet, "usage"),
    ("users", users.UserViewSet, "user"),
):
    router.register(prefix, viewset, basename)

ITEMS: Any = {"get": "list", "post": "create", "delete": "clear_conversation_items"}
WINDOW: Any = {"get": "get_window", "delete": "clear_window"}
USER: Any = {"get": "get_user", "put": "put_user", "patch": "update_user"}

urlpatterns = [
    path("conversations/items/", items.ItemViewSet.as_view(ITEMS), name="item-list"),
    path(
        "conversations/items/<uuid:item_id>/",
        items.ItemViewSet.as_view({"delete": "destroy"}),
        name="item-detail",
    ),
    path("search/", search.SearchViewSet.as_view({"get": "search_everything"}), name="search"),
    path("usage/", usage.UsageViewSet.as_view({"get": "retrieve"}), name="usage"),
    path("windows/", working_context.WindowViewSet.as_view(WINDOW), name="window"),
    *router.urls,
    # After the others, because an id may have slashes.
    path("users/<path:user_id>/", users.UserViewSet.as_view(USER), name="user-detail"),
]
