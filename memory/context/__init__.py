"""Three tiers of context: facts, sessions, and the working context of one prompt."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory.context.manager import ContextManager
    from memory.context.session import SessionStore
    from memory.context.working import WorkingContextCompiler
    from memory.facts import LongTermMemory
    from memory.models import MemoryEntry

_MODULES = {
    "ContextManager": "memory.context.manager",
    "LongTermMemory": "memory.facts",
    "MemoryEntry": "memory.models",
    "SessionStore": "memory.context.session",
    "WorkingContextCompiler": "memory.context.working",
}


def __getattr__(name: str) -> Any:
    """Import a name on first access: the compiler alone needs neither Django nor LangGraph."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
