"""Pages of what agents remember: conversations, facts, windows, and reasons."""

from konstruct.admin.memory import (
    conversations,
    facts,
    memories,
    retention,
    rows,
    windows,
)

__all__ = [
    "conversations",
    "facts",
    "memories",
    "retention",
    "rows",
    "windows",
]
