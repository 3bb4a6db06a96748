"""URLs of the resources below /api/v1/, and the view of their OpenAPI description."""

import threading
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.http import HttpResponse
from django.urls import path
from django.utils.decorators import method_decorator
from django.views.decorators.cache import cache_control
from django.views.decorators.http import conditional_page
from drf_spectacular import renderers
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request
from rest_framework.routers import SimpleRouter

from konstruct.api.resources.agents import agents, dry_runs
from konstruct.api.resources.memory import (
    context,
    conversations,
    extraction_runs,
    facts,
    recall_events,
    search,
)
from konstruct.api.resources.operations import escalations, usage
from konstruct.api.resources.people import erasures, users

router = SimpleRouter(use_regex_path=False)
for prefix, viewset, basename in (
    ("agents", agents.AgentViewSet, "agent"),
    ("agents/<uuid:agent_id>/versions", agents.AgentVersionViewSet, "agent-version"),
    ("agents/<uuid:agent_id>/dry-runs", dry_runs.DryRunViewSet, "dry-run"),
    ("agents/<uuid:agent_id>/questions", dry_runs.QuestionViewSet, "question"),
    ("api-keys", usage.ApiKeyViewSet, "api-key"),
    ("context", context.ContextViewSet, "context"),
    ("conversations", conversations.ConversationViewSet, "conversation"),
    ("erasures", erasures.ErasureViewSet, "erasure"),
    ("escalations", escalations.EscalationViewSet, "escalation"),
    ("extraction-runs", extraction_runs.ExtractionRunViewSet, "extraction-run"),
    ("extractions", extraction_runs.ExtractionViewSet, "extraction"),
    ("facts", facts.FactViewSet, "fact"),
    ("imports", extraction_runs.HistoryImportViewSet, "history-import"),
    ("identities", users.IdentityViewSet, "identity"),
    ("language-models", agents.LanguageModelViewSet, "language-model"),
    ("memories", search.MemoryViewSet, "memory"),
    ("messages/<uuid:message_id>/exclusions", recall_events.ExclusionViewSet, "exclusion"),
    ("recall-events", recall_events.RecallEventViewSet, "recall-event"),
    ("sessions", context.SessionViewSet, "session"),
    ("tool-calls", escalations.ToolCallViewSet, "tool-call"),
    ("usage", usage.UsageByDayViewSet, "usage"),
    ("users", users.UserViewSet, "user"),
):
    router.register(prefix, viewset, basename)

ITEMS: Any = {"get": "list", "post": "create", "delete": "clear_conversation_items"}
WINDOW: Any = {"get": "get_window", "delete": "clear_window"}
USER: Any = {"get": "get_user", "put": "put_user", "patch": "update_user"}

urlpatterns = [
    path("conversations/items/", conversations.ItemViewSet.as_view(ITEMS), name="item-list"),
    path(
        "conversations/items/<uuid:item_id>/",
        conversations.ItemViewSet.as_view({"delete": "destroy"}),
        name="item-detail",
    ),
    path("search/", search.SearchViewSet.as_view({"get": "search_everything"}), name="search"),
    path("usage/", usage.UsageViewSet.as_view({"get": "retrieve"}), name="usage"),
    path("windows/", context.WindowViewSet.as_view(WINDOW), name="window"),
    *router.urls,
    # After the others, because an id may have slashes.
    path("users/<path:user_id>/", users.UserViewSet.as_view(USER), name="user-detail"),
]

# drf-spectacular's generator is not thread-safe.
_generating = threading.Lock()


@cache
def _descriptions() -> Mapping[str, bytes]:
    """Return the description in both formats. It is the same for every host and caller."""
    schema = spectacular_settings.DEFAULT_GENERATOR_CLASS().get_schema(request=None, public=True)
    return {
        "yaml": renderers.OpenApiYamlRenderer().render(schema, renderer_context={}),
        "json": renderers.OpenApiJsonRenderer().render(schema, renderer_context={}),
    }


@method_decorator([conditional_page, cache_control(no_cache=True)], name="dispatch")
class DescriptionView(SpectacularAPIView):
    """Serves the description in the format that the Accept header asks for."""

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        """Return the description; 304 if the client already has it."""
        with _generating:
            described = _descriptions()
        content = described["json" if "json" in request.accepted_renderer.format else "yaml"]
        return HttpResponse(content, content_type=request.accepted_media_type)
