"""Facts: statements apart from any conversation, with versions and validity."""

from memory.facts.lifecycle import Quote, confirm, record_candidate, reject, restore, retract
from memory.facts.rows import exclude_from_recall, filter_facts, include_again, recalls_with
from memory.facts.service import LongTermMemory, StoredFact, delete_facts, embed_facts
from memory.models import MemoryEntry
from memory.models.facts import SYSTEM, Author
