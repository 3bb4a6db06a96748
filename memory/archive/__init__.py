"""The portable local store: conversations and their vectors in one SQLite file.

It needs neither Django nor Postgres; only the default embedder of MemoryManager does.
"""

from memory.archive.database import (
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
from memory.archive.manager import (
    FactHit,
    MemoryManager,
    SearchHit,
    StoredVector,
    VectorHit,
    VectorStore,
)
from memory.archive.sqlite_manager import Conversation, Message, SQLiteManager
