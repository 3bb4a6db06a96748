"""URLs below /mem0/: the paths that mem0's clients from version 2 on add to their host."""

from django.urls import path, re_path

from konstruct.interfaces.mem0 import views
from konstruct.interfaces.mem0.base import not_offered, unknown

# A name may hold slashes, which clients encode, and Django decodes.
ENTITY = r"^v2/entities/(?P<kind>user|agent|app|run)/(?P<name>.+)/$"
NOT_OFFERED = (
    r"^(?:v1/(?:exports|feedback|summary)|v2/profiles|v2/entities/user/.+/profile"
    r"|api/v1/(?:webhooks|orgs))/"
)

urlpatterns = [
    path("v1/ping/", views.PingView.as_view(), name="mem0-ping"),
    path("v3/memories/", views.ListView.as_view(), name="mem0-list"),
    path("v3/memories/add/", views.AddView.as_view(), name="mem0-add"),
    path("v3/memories/search/", views.SearchView.as_view(), name="mem0-search"),
    path("v1/memories/", views.MemoriesView.as_view(), name="mem0-memories"),
    path("v1/memories/<uuid:memory_id>/", views.MemoryView.as_view(), name="mem0-memory"),
    path("v1/memories/<uuid:memory_id>/history/", views.HistoryView.as_view(), name="mem0-history"),
    path("v1/batch/", views.BatchView.as_view(), name="mem0-batch"),
    path("v1/entities/", views.EntitiesView.as_view(), name="mem0-entities"),
    re_path(NOT_OFFERED, not_offered),
    re_path(ENTITY, views.EntityView.as_view(), name="mem0-entity"),
    re_path(r"", unknown),
]
