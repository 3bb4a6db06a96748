"""The portable local store: conversations and their vectors in one SQLite file.

It needs neither Django nor Postgres. Only the product's own embedder, which MemoryManager takes
where none is given, needs them.
"""

from memory.archive.exceptions import (
    ArchiveBusy,
    ArchiveClosed,
    ArchiveDamaged,
    ArchiveError,
    ArchiveUnavailable,
    DimensionMismatch,
    DuplicateId,
    EmbedderError,
    IncompleteArchive,
    ModelMismatch,
    NewerArchive,
    NotAnArchive,
    UnknownId,
    UnsafeArchive,
)
from memory.archive.facts import FactHit
from memory.archive.manager import MemoryManager
from memory.archive.records import Conversation, Message, SearchHit, StoredVector, VectorHit
from memory.archive.sqlite_manager import SQLiteManager
from memory.archive.untrusted import UntrustedArchive
from memory.archive.vector_store import VectorStore

__all__ = [
    "ArchiveBusy",
    "ArchiveClosed",
    "ArchiveDamaged",
    "ArchiveError",
    "ArchiveUnavailable",
    "Conversation",
    "DimensionMismatch",
    "DuplicateId",
    "EmbedderError",
    "FactHit",
    "IncompleteArchive",
    "MemoryManager",
    "Message",
    "ModelMismatch",
    "NewerArchive",
    "NotAnArchive",
    "SQLiteManager",
    "SearchHit",
    "StoredVector",
    "UnknownId",
    "UnsafeArchive",
    "UntrustedArchive",
    "VectorHit",
    "VectorStore",
]
