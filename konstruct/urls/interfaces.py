"""URLs of interfaces of other products, on the hosts of tenants and on the public ones."""

from django.urls import include, path, re_path

from konstruct.interfaces.mcp import views as mcp
from konstruct.interfaces.mcp.errors import ENDPOINT
from konstruct.interfaces.mem0 import views as mem0
from konstruct.interfaces.mem0.base import not_offered, unknown
from konstruct.interfaces.openai import views as openai

mcp_urls = [
    path(ENDPOINT[1:], mcp.McpView.as_view(), name="mcp"),
    path(f"{ENDPOINT[1:]}/", mcp.McpView.as_view()),
    path(mcp.METADATA[1:], mcp.resource_metadata, name="mcp-metadata"),
    path(mcp.METADATA_OF_ENDPOINT[1:], mcp.resource_metadata),
]

openai_urls = [
    path("v1/chat/completions", openai.ChatCompletionsView.as_view(), name="chat-completions"),
    path("v1/models", openai.ModelsView.as_view(), name="models"),
    path("v1/models/<path:model>", openai.ModelView.as_view(), name="model"),
    re_path(r"^v1/", openai.unknown),
]

# A name may hold slashes, which clients encode, and Django decodes.
ENTITY = r"^v2/entities/(?P<kind>user|agent|app|run)/(?P<name>.+)/$"
NOT_OFFERED = (
    r"^(?:v1/(?:exports|feedback|summary)|v2/profiles|v2/entities/user/.+/profile"
    r"|api/v1/(?:webhooks|orgs))/"
)
# The paths that mem0's clients from version 2 on add to their host.
mem0_urls = [
    path("v1/ping/", mem0.PingView.as_view(), name="mem0-ping"),
    path("v3/memories/", mem0.ListView.as_view(), name="mem0-list"),
    path("v3/memories/add/", mem0.AddView.as_view(), name="mem0-add"),
    path("v3/memories/search/", mem0.SearchView.as_view(), name="mem0-search"),
    path("v1/memories/", mem0.MemoriesView.as_view(), name="mem0-memories"),
    path("v1/memories/<uuid:memory_id>/", mem0.MemoryView.as_view(), name="mem0-memory"),
    path("v1/memories/<uuid:memory_id>/history/", mem0.HistoryView.as_view(), name="mem0-history"),
    path("v1/batch/", mem0.BatchView.as_view(), name="mem0-batch"),
    path("v1/entities/", mem0.EntitiesView.as_view(), name="mem0-entities"),
    re_path(NOT_OFFERED, not_offered),
    re_path(ENTITY, mem0.EntityView.as_view(), name="mem0-entity"),
    re_path(r"", unknown),
]

urlpatterns = [*mcp_urls, *openai_urls, path("mem0/", include(mem0_urls))]
