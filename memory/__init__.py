"""The memory of agents: the transcript, the short-term window, long-term memory and recall."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory.archive import MemoryManager, SQLiteManager, VectorStore

__all__ = ["MemoryManager", "SQLiteManager", "VectorStore"]


def __getattr__(name: str) -> Any:
    """Import the portable local store on first access: it loads SQLite and numpy."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from memory import archive

    return getattr(archive, name)
