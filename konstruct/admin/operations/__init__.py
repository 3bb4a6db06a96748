"""Pages of work in progress: replies, deliveries, tool calls, escalations."""

from konstruct.admin.operations import (
    deliveries,
    escalations,
    failed_jobs,
    inbox,
    installations,
    replies,
    reply_reviews,
    tool_calls,
)

__all__ = [
    "deliveries",
    "escalations",
    "failed_jobs",
    "inbox",
    "installations",
    "replies",
    "reply_reviews",
    "tool_calls",
]
