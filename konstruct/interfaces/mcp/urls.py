"""URLs of the MCP server."""

from django.urls import path

from konstruct.interfaces.mcp.errors import ENDPOINT
from konstruct.interfaces.mcp.views import (
    METADATA,
    METADATA_OF_ENDPOINT,
    McpView,
    resource_metadata,
)

urlpatterns = [
    path(ENDPOINT[1:], McpView.as_view(), name="mcp"),
    path(f"{ENDPOINT[1:]}/", McpView.as_view()),
    path(METADATA[1:], resource_metadata, name="mcp-metadata"),
    path(METADATA_OF_ENDPOINT[1:], resource_metadata),
]
