"""Facts: statements apart from any conversation, with versions and validity."""

from memory.facts.exclusions import exclude_from_recall, include_again
from memory.facts.finding import nearest, recalls_with, selected
from memory.facts.lifecycle import (
    Outcome,
    Quote,
    Recorded,
    confirm,
    record_candidate,
    reject,
    restore,
    retract,
    roll_back,
)
from memory.facts.service import LongTermMemory, Stored, delete_facts, embed_facts, reembed_facts
from memory.models import MemoryEntry
from memory.models.facts import SYSTEM, Author

__all__ = [
    "SYSTEM",
    "Author",
    "LongTermMemory",
    "MemoryEntry",
    "Outcome",
    "Quote",
    "Recorded",
    "Stored",
    "confirm",
    "delete_facts",
    "embed_facts",
    "exclude_from_recall",
    "include_again",
    "nearest",
    "recalls_with",
    "record_candidate",
    "reembed_facts",
    "reject",
    "restore",
    "retract",
    "roll_back",
    "selected",
]
