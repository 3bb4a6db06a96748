"""URLs of interfaces of other products, on the hosts of tenants and on the public ones."""

from typing import Any

from django.urls import include, path, re_path

from konstruct.interfaces.mcp import views as mcp
from konstruct.interfaces.mem0 import views as mem0
from konstruct.interfaces.openai import views as openai

MCP = mcp.McpViewSet.as_view({"post": "answer"})

mcp_urls = [
    path("mcp", MCP, name="mcp"),
    path("mcp/", MCP),
    path(mcp.METADATA[1:], mcp.resource_metadata, name="mcp-metadata"),
    path(mcp.METADATA_OF_ENDPOINT[1:], mcp.resource_metadata),
]

openai_urls = [
    path(
        "v1/chat/completions",
        openai.ChatCompletionViewSet.as_view({"post": "create"}),
        name="chat-completions",
    ),
    path("v1/models", openai.ModelViewSet.as_view({"get": "list"}), name="models"),
    path("v1/models/<path:model>", openai.ModelViewSet.as_view({"get": "retrieve"}), name="model"),
    re_path(r"^v1/", openai.unknown),
]

# A name may hold slashes, which clients encode, and Django decodes.
ENTITY = r"^v2/entities/(?P<kind>user|agent|app|run)/(?P<name>.+)/$"
NOT_OFFERED = (
    r"^(?:v1/(?:exports|feedback|summary)|v2/profiles|v2/entities/user/.+/profile"
    r"|api/v1/(?:webhooks|orgs))/"
)
memories: Any = mem0.MemoryViewSet.as_view
MEMORY = {"get": "get_memory", "put": "change_memory", "delete": "delete_memory"}
BATCH = {"put": "change_several", "delete": "delete_several"}
HISTORY = "v1/memories/<uuid:memory_id>/history/"
# The paths that mem0's clients from version 2 on add to their host.
mem0_urls = [
    path("v1/ping/", memories({"get": "ping"}), name="mem0-ping"),
    path("v3/memories/", memories({"post": "list_memories"}), name="mem0-list"),
    path("v3/memories/add/", memories({"post": "add"}), name="mem0-add"),
    path("v3/memories/search/", memories({"post": "search"}), name="mem0-search"),
    path("v1/memories/", memories({"delete": "delete_all"}), name="mem0-memories"),
    path("v1/memories/<uuid:memory_id>/", memories(MEMORY), name="mem0-memory"),
    path(HISTORY, memories({"get": "get_history"}), name="mem0-history"),
    path("v1/batch/", memories(BATCH), name="mem0-batch"),
    path("v1/entities/", memories({"get": "list_entities"}), name="mem0-entities"),
    re_path(NOT_OFFERED, mem0.not_offered),
    re_path(ENTITY, memories({"delete": "delete_entity"}), name="mem0-entity"),
    re_path(r"", mem0.unknown),
]

urlpatterns = [*mcp_urls, *openai_urls, path("mem0/", include(mem0_urls))]
