"""URLs below /mem0/: the paths that mem0's clients add to their host."""

from django.urls import path, re_path

from konstruct.interfaces.mem0.base import not_offered, unknown
from konstruct.interfaces.mem0.entities import EntitiesView, EntityView
from konstruct.interfaces.mem0.memories import (
    AddView,
    ListView,
    MemoriesView,
    PingView,
    SearchView,
)
from konstruct.interfaces.mem0.one import BatchView, FeedbackView, HistoryView, MemoryView

# A name may hold slashes, which clients encode, and Django decodes.
ENTITY = r"^v2/entities/(?P<kind>user|agent|app|run)/(?P<name>.+)/$"

urlpatterns = [
    path("v1/ping/", PingView.as_view(), name="mem0-ping"),
    path("v3/memories/", ListView.as_view(), name="mem0-list"),
    path("v3/memories/add/", AddView.as_view(), name="mem0-add"),
    path("v3/memories/search/", SearchView.as_view(), name="mem0-search"),
    path("v1/memories/", MemoriesView.as_view(), name="mem0-memories"),
    path("v1/memories/<uuid:memory_id>/", MemoryView.as_view(), name="mem0-memory"),
    path("v1/memories/<uuid:memory_id>/history/", HistoryView.as_view(), name="mem0-history"),
    path("v1/batch/", BatchView.as_view(), name="mem0-batch"),
    path("v1/feedback/", FeedbackView.as_view(), name="mem0-feedback"),
    path("v1/entities/", EntitiesView.as_view(), name="mem0-entities"),
    re_path(
        r"^v2/entities/user/.+/profile/$",
        not_offered("profiles. Search a user's memories, or list them."),
    ),
    re_path(ENTITY, EntityView.as_view(), name="mem0-entity"),
    re_path(r"^v2/profiles/", not_offered("profiles. Search a user's memories, or list them.")),
    re_path(
        r"^v1/(?:exports|summary)/",
        not_offered(
            "exports in a schema of yours, and summaries. List memories in pages: get_all has them"
            " whole. An operator can make an archive."
        ),
    ),
    re_path(
        r"^api/v1/webhooks/",
        not_offered(
            "webhooks. Memories are there when the answer to a request is, and the access log has"
            " who changed what."
        ),
    ),
    re_path(
        r"^api/v1/orgs/",
        not_offered("organizations and projects. A tenant's admin has its people and settings."),
    ),
    re_path(r"", unknown),
]
