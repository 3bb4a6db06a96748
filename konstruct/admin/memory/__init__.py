"""Pages of what agents remember: conversations, facts, windows, and reasons."""

from konstruct.admin.memory import (
    asking_again,
    conversations,
    exclusions,
    extraction_runs,
    fact_review,
    facts,
    memories,
    reply_reviews,
    retention,
    rows,
    search,
    sessions,
    windows,
)

__all__ = [
    "asking_again",
    "conversations",
    "exclusions",
    "extraction_runs",
    "fact_review",
    "facts",
    "memories",
    "reply_reviews",
    "retention",
    "rows",
    "search",
    "sessions",
    "windows",
]
