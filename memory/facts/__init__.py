"""Facts: what is known apart from any conversation, with versions and validity."""

from memory.facts.service import (
    LongTermMemory,
    Stored,
    delete_facts,
    nearest,
    reembed_facts,
    selected,
)
from memory.models import MemoryEntry

__all__ = [
    "LongTermMemory",
    "MemoryEntry",
    "Stored",
    "delete_facts",
    "nearest",
    "reembed_facts",
    "selected",
]
