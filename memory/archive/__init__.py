"""The portable local store: conversations and their vectors in one SQLite file.

It needs neither Django nor Postgres; only the default embedder of MemoryManager does.
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
from memory.archive.records import (
    Conversation,
    FactHit,
    Message,
    SearchHit,
    StoredVector,
    VectorHit,
)
from memory.archive.sqlite_manager import SQLiteManager
from memory.archive.vector_store import VectorStore
