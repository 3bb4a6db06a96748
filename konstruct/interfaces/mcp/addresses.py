"""Addresses of the MCP server."""

from typing import Final

ENDPOINT: Final = "/mcp"
# RFC 9728 puts the path of what is protected behind the well-known one.
METADATA: Final = "/.well-known/oauth-protected-resource"
METADATA_OF_ENDPOINT: Final = METADATA + ENDPOINT
