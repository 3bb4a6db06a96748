"""URLs below /mem0/: the paths that mem0's clients add to their host."""

from django.urls import path, re_path

from konstruct.interfaces.mem0.base import not_offered, unknown
from konstruct.interfaces.mem0.entities import EntitiesView, EntityView
from konstruct.interfaces.mem0.exports.views import ExportsView, ExportView
from konstruct.interfaces.mem0.memories import (
    AddView,
    ListView,
    MemoriesView,
    PingView,
    SearchView,
)
from konstruct.interfaces.mem0.one import BatchView, FeedbackView, HistoryView, MemoryView
from konstruct.interfaces.mem0.project import (
    PROFILES,
    PROJECTS,
    SUMMARIES,
    WEBHOOKS,
    ProfileSettingsView,
    ProfileView,
    ProjectView,
    WebhooksView,
)

# Clients of the version 1, and the one for JavaScript, have older addresses of some.
# A name may hold slashes, which clients encode, and Django decodes.
PROFILE = r"^v2/entities/user/(?P<name>.+)/profile/$"
ENTITY = r"^v[12]/entities/(?P<kind>user|agent|app|run)/(?P<name>.+)/$"

urlpatterns = [
    path("v1/ping/", PingView.as_view(), name="mem0-ping"),
    re_path(r"^v[23]/memories/$", ListView.as_view(), name="mem0-list"),
    path("v3/memories/add/", AddView.as_view(), name="mem0-add"),
    re_path(r"^v[23]/memories/search/$", SearchView.as_view(), name="mem0-search"),
    path("v1/memories/", MemoriesView.as_view(), name="mem0-memories"),
    path("v1/memories/<uuid:memory_id>/", MemoryView.as_view(), name="mem0-memory"),
    path("v1/memories/<uuid:memory_id>/history/", HistoryView.as_view(), name="mem0-history"),
    path("v1/batch/", BatchView.as_view(), name="mem0-batch"),
    path("v1/feedback/", FeedbackView.as_view(), name="mem0-feedback"),
    path("v1/entities/", EntitiesView.as_view(), name="mem0-entities"),
    path("v1/exports/", ExportsView.as_view(), name="mem0-exports"),
    path("v1/exports/get/", ExportView.as_view(), name="mem0-export"),
    re_path(r"^v1/summary/", not_offered(SUMMARIES)),
    re_path(PROFILE, ProfileView.as_view(), name="mem0-profile"),
    path("v2/profiles/settings/", ProfileSettingsView.as_view(), name="mem0-profile-settings"),
    re_path(r"^v2/profiles/", not_offered(PROFILES)),
    re_path(ENTITY, EntityView.as_view(), name="mem0-entity"),
    path(
        "api/v1/webhooks/projects/<uuid:project_id>/",
        WebhooksView.as_view(),
        name="mem0-webhooks",
    ),
    re_path(r"^api/v1/webhooks/", not_offered(WEBHOOKS)),
    path(
        "api/v1/orgs/organizations/<uuid:org_id>/projects/<uuid:project_id>/",
        ProjectView.as_view(),
        name="mem0-project",
    ),
    re_path(r"^api/v1/orgs/", not_offered(PROJECTS)),
    re_path(r"", unknown),
]
