"""Pages of work in progress: replies, deliveries, tool calls, escalations, identities."""

from konstruct.admin.operations import (
    deliveries,
    escalations,
    identities,
    inbox,
    installations,
    replies,
    tool_calls,
)

__all__ = [
    "deliveries",
    "escalations",
    "identities",
    "inbox",
    "installations",
    "replies",
    "tool_calls",
]
