"""URLs of the MCP server."""

from django.urls import path

from konstruct.interfaces.mcp.addresses import ENDPOINT, METADATA, METADATA_OF_ENDPOINT
from konstruct.interfaces.mcp.views import McpView, resource_metadata

urlpatterns = [
    path(ENDPOINT[1:], McpView.as_view(), name="mcp"),
    path(f"{ENDPOINT[1:]}/", McpView.as_view()),
    path(METADATA[1:], resource_metadata, name="mcp-metadata"),
    path(METADATA_OF_ENDPOINT[1:], resource_metadata),
]
