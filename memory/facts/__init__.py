"""Facts: what is known apart from any conversation, with versions and validity."""

from memory.facts.service import LongTermMemory, Stored, reembed_facts, selected
from memory.models import MemoryEntry

__all__ = ["LongTermMemory", "MemoryEntry", "Stored", "reembed_facts", "selected"]
