"""Pages of what agents remember: conversations, facts, windows, and reasons."""

from konstruct.admin.memory import (
    conversations,
    extraction_runs,
    fact_review,
    facts,
    memories,
    retention,
    rows,
    windows,
)

__all__ = [
    "conversations",
    "extraction_runs",
    "fact_review",
    "facts",
    "memories",
    "retention",
    "rows",
    "windows",
]
