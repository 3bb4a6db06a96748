"""An archive whole: conversations whose messages are found by what they mean."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from memory.archive.database import Closing
from memory.archive.embedder import Embedder, checked_embedder
from memory.archive.exceptions import EmbedderError, ModelMismatch
from memory.archive.facts import FactHit, search_facts
from memory.archive.records import (
    MESSAGE_KEYS,
    Conversation,
    Message,
    SearchHit,
    new_message,
    new_messages,
)
from memory.archive.sqlite_manager import SQLiteManager
from memory.archive.vector_store import VectorStore
from memory.arguments import count_argument, text_argument
from memory.conf import EMBEDDING_DIMENSIONS
from memory.exceptions import InvalidArgument

# The manager makes the vectors, and with them their ids.
_KEYS = tuple(key for key in MESSAGE_KEYS if key != "embedding_id")
# Messages in one transaction: what is embedded again after a kill.
REEMBEDDING_BATCH = 256

_OTHER_MODELS = """
SELECT DISTINCT e.model_version FROM embeddings e JOIN messages m ON m.embedding_id = e.id
WHERE e.model_version < :version OR e.model_version > :version
"""
# IS NOT: a message without a vector is one of no model.
_STALE = """
SELECT m.position, m.id, m.content, m.embedding_id
FROM messages m LEFT JOIN embeddings e ON e.id = m.embedding_id
WHERE e.model_version IS NOT :version AND m.position BETWEEN :first AND :last
ORDER BY m.position LIMIT :batch
"""
_END = 2**63 - 1


class MemoryManager(Closing):
    """One SQLite file with conversations, their messages, and a vector of each message.

    A message and its vector are written together or not at all. The embedder is anything with a
    `version` and `encode(texts)`; without one, the product's model is loaded when first needed.

    Raises:
        ArchiveUnavailable, NotAnArchive, ArchiveDamaged, NewerArchive, DimensionMismatch: the file
            is none that we can use; it is left as it was.
        EmbedderError: the embedder is none.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        embedder: Embedder | None = None,
        *,
        dimensions: int = EMBEDDING_DIMENSIONS,
    ) -> None:
        self._embedder = checked_embedder(embedder)
        self._sqlite = SQLiteManager(path)
        try:
            self._vectors = VectorStore(self._sqlite, dimensions)
        except BaseException:
            self._sqlite.close()
            raise

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._sqlite.path

    # --- Conversations ---------------------------------------------------------------------------

    def create_conversation(
        self,
        title: str = "",
        *,
        id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | None = None,
    ) -> str:
        """Begin a conversation and return its id. DuplicateId if there is one of this id."""
        return self._sqlite.create_conversation(
            title, id=id, metadata=metadata, created_at=created_at
        )

    def get_conversation(self, id: str) -> Conversation:
        """The conversation of this id, or UnknownId."""
        return self._sqlite.get_conversation(id)

    def list_conversations(
        self, *, limit: int | None = None, offset: int = 0
    ) -> list[Conversation]:
        """Conversations, the one that was added to last first."""
        return self._sqlite.list_conversations(limit=limit, offset=offset)

    def count_conversations(self) -> int:
        """How many conversations there are."""
        return self._sqlite.count_conversations()

    def update_conversation(
        self, id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Conversation:
        """Replace the title or the metadata, whichever is given. UnknownId if there is none."""
        return self._sqlite.update_conversation(id, title=title, metadata=metadata)

    def delete_conversation(self, id: str) -> None:
        """Delete a conversation with its messages and their vectors. UnknownId if there is none."""
        self._sqlite.delete_conversation(id)

    # --- Messages --------------------------------------------------------------------------------

    def add_message(
        self,
        conversation_id: str,
        role: str,
        content: str,
        *,
        id: str | None = None,
        timestamp: datetime | None = None,
    ) -> str:
        """Add a message (role: user or assistant) with its vector, and return its id.

        Raises:
            UnknownId: there is no such conversation.
            DuplicateId: there is a message of this id.
        """
        message = new_message(conversation_id, role, content, id=id, timestamp=timestamp)
        return self._add(conversation_id, [message])[0]

    def add_messages(
        self, conversation_id: str, messages: Iterable[Mapping[str, Any]]
    ) -> list[str]:
        """Add all of these messages with their vectors, or nothing, and return their ids.

        Each is a mapping with "role" and "content", and if wanted "id" and "timestamp".
        """
        return self._add(conversation_id, new_messages(conversation_id, messages, keys=_KEYS))

    def get_message(self, id: str) -> Message:
        """The message of this id, or UnknownId."""
        return self._sqlite.get_message(id)

    def list_messages(
        self,
        conversation_id: str,
        *,
        limit: int | None = None,
        offset: int = 0,
        newest_first: bool = False,
    ) -> list[Message]:
        """Messages of a conversation in the order of their timestamps, or UnknownId."""
        return self._sqlite.list_messages(
            conversation_id, limit=limit, offset=offset, newest_first=newest_first
        )

    def count_messages(self, conversation_id: str | None = None) -> int:
        """How many messages there are, in one conversation or in all."""
        return self._sqlite.count_messages(conversation_id)

    def delete_message(self, id: str) -> None:
        """Delete a message and its vector. UnknownId if there is none."""
        self._sqlite.delete_message(id)

    # --- Meaning ---------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        conversation_id: str | None = None,
        min_similarity: float | None = None,
    ) -> list[SearchHit]:
        """The `k` messages nearest in meaning to `query`, best first; in all conversations, or one.

        Raises:
            UnknownId: there is no such conversation.
            ModelMismatch: some messages were embedded by another model, and could not be found.
        """
        if not text_argument("query", query).strip():
            raise InvalidArgument(f"query={query!r} holds no text to search for")
        ids = None
        if conversation_id is not None:
            ids = self._sqlite.embedding_ids(conversation_id)
        version = self._embedder.version
        if others := self._sqlite.rows(_OTHER_MODELS, {"version": version}):
            names = ", ".join(repr(other) for (other,) in others)
            raise ModelMismatch(
                f"{self.path} holds messages that were embedded by {names}, and could not be found"
                f" by {version!r}: open it with that embedder, or call reembed() first"
            )
        hits = self._vectors.search(
            self._encode([query])[0],
            k,
            model_version=version,
            ids=ids,
            min_similarity=min_similarity,
        )
        found = self._sqlite.messages_of_embeddings([hit.id for hit in hits])
        return [SearchHit(found[hit.id], hit.similarity) for hit in hits if hit.id in found]

    def search_facts(self, query: str, k: int = 10) -> list[FactHit]:
        """The `k` facts nearest in meaning to `query`, best first; only those that are valid now.

        An archive that was exported from a tenant has facts; others have none.
        """
        if not text_argument("query", query).strip():
            raise InvalidArgument(f"query={query!r} holds no text to search for")
        return search_facts(self._sqlite, query, count_argument("k", k), self._embedder)

    def model_versions(self) -> dict[str, int]:
        """How many messages were embedded by each model."""
        return self._vectors.model_versions()

    def reembed(self) -> int:
        """Embed every message that this model has not embedded yet; return how many there were.

        Done in batches: killed in between, it goes on from there when called again.
        """
        version = self._embedder.version
        done = 0
        scope = {"version": version, "first": 0, "last": _END, "batch": REEMBEDDING_BATCH}
        while batch := self._sqlite.rows(_STALE, scope):
            texts = {id: content for _, id, content, _ in batch if content.strip()}
            embedded = dict(zip(texts, self._encode(list(texts.values())), strict=True))
            last = batch[-1][0]
            with self._sqlite.transaction() as connection:
                # Others may have deleted or embedded some while we were embedding.
                stale = self._sqlite.rows(_STALE, {**scope, "last": last})
                worded = [id for _, id, _, _ in stale if id in embedded]
                stored = self._vectors.store_batch(
                    [embedded[id] for id in worded], model_version=version
                )
                connection.executemany(
                    "UPDATE messages SET embedding_id = ? WHERE id = ?",
                    zip(stored, worded, strict=True),
                )
                connection.executemany(
                    "DELETE FROM embeddings WHERE id = ?",
                    ((old,) for _, _, _, old in stale if old is not None),
                )
            done += len(worded)
            scope["first"] = last + 1
        return done

    # --- The file --------------------------------------------------------------------------------

    def verify(self) -> None:
        """Read the whole file and compare what must agree; ArchiveDamaged if something does not."""
        self._sqlite.verify()

    def close(self) -> None:
        """Let go of the file, in all threads."""
        self._sqlite.close()

    def _add(self, conversation_id: str, messages: list[Message]) -> list[str]:
        # Before the embedding, which takes its time.
        self._sqlite.get_conversation(conversation_id)
        # A message without a word has no meaning to be found by.
        worded = [message for message in messages if message.content.strip()]
        version = self._embedder.version
        vectors = self._encode([message.content for message in worded])
        with self._sqlite.transaction():
            stored = self._vectors.store_batch(vectors, model_version=version)
            embedding_ids = dict(zip((message.id for message in worded), stored, strict=True))
            self._sqlite.insert_messages(
                conversation_id,
                [replace(m, embedding_id=embedding_ids.get(m.id)) for m in messages],
            )
        return [message.id for message in messages]

    def _encode(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        if not texts:
            return np.empty((0, self._vectors.dimensions), dtype=np.float32)
        vectors = np.asarray(self._embedder.encode(texts))
        expected = (len(texts), self._vectors.dimensions)
        if vectors.shape != expected:
            raise EmbedderError(
                f"the embedder {self._embedder.version!r} gave an array of shape {vectors.shape},"
                f" not {expected}, for {len(texts)} texts: for vectors of another size begin a new"
                " file, with MemoryManager(path, embedder, dimensions=...)"
            )
        return vectors
