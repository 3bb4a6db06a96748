"""The portable local store: conversations and their vectors in one SQLite file.

Needs neither Django nor Postgres, unless MemoryManager is left to take the product's own embedder.
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
    ModelMismatch,
    NewerArchive,
    NotAnArchive,
    UnknownId,
)
from memory.archive.manager import MemoryManager
from memory.archive.records import Conversation, Message, SearchHit, StoredVector, VectorHit
from memory.archive.sqlite_manager import SQLiteManager
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
    "MemoryManager",
    "Message",
    "ModelMismatch",
    "NewerArchive",
    "NotAnArchive",
    "SQLiteManager",
    "SearchHit",
    "StoredVector",
    "UnknownId",
    "VectorHit",
    "VectorStore",
]
