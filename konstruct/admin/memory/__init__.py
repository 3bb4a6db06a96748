"""Pages of what agents remember: conversations, facts, people, windows, and reasons."""

from konstruct.admin.memory import (
    conversations,
    facts,
    memories,
    people,
    retention,
    rows,
    windows,
)

__all__ = [
    "conversations",
    "facts",
    "memories",
    "people",
    "retention",
    "rows",
    "windows",
]
