"""Pages of work in progress: replies, deliveries, extractions, tool calls, escalations."""

from konstruct.admin.operations import (
    deliveries,
    escalations,
    extractions,
    failed_jobs,
    inbox,
    installations,
    model_calls,
    notifications,
    replies,
    tool_calls,
    usage,
)

__all__ = [
    "deliveries",
    "escalations",
    "extractions",
    "failed_jobs",
    "inbox",
    "installations",
    "model_calls",
    "notifications",
    "replies",
    "tool_calls",
    "usage",
]
