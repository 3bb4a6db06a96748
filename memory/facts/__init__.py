"""Facts: what is known apart from any conversation, with versions and validity."""

from memory.facts.finding import nearest, selected
from memory.facts.service import LongTermMemory, Stored, delete_facts, embed_facts, reembed_facts
from memory.models import MemoryEntry

__all__ = [
    "LongTermMemory",
    "MemoryEntry",
    "Stored",
    "delete_facts",
    "embed_facts",
    "nearest",
    "reembed_facts",
    "selected",
]
