"""Vectors in an archive, found by their cosine similarity."""

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np
from numpy.typing import ArrayLike

from memory.archive.database import DimensionMismatch, DuplicateId, ModelMismatch, UnknownId
from memory.archive.sqlite_manager import SQLiteManager, new_id
from memory.arguments import count_argument, id_argument, similarity_argument, vector_array
from memory.conf import EMBEDDING_DIMENSIONS
from memory.exceptions import InvalidArgument

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
        dimensions: int = EMBEDDING_DIMENSIONS,
    ) -> None:
        self.dimensions = count_argument("dimensions", dimensions)
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
        id_argument("model_version", model_version)
        ids = [new_id(id) for id in (ids if ids is not None else [None] * len(blobs))]
        message_ids = [None] * len(blobs) if message_ids is None else message_ids
        for name, values in (("ids", ids), ("message_ids", message_ids)):
            if len(values) != len(blobs):
                raise InvalidArgument(f"{len(values)} {name} were given for {len(blobs)} vectors")
        for message_id in message_ids:
            if message_id is not None:
                id_argument("message_id", message_id)
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
                    raise DuplicateId(
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
            (id_argument("id", id),),
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
            connection.execute("DELETE FROM embeddings WHERE id = ?", (id_argument("id", id),))
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
        k = count_argument("k", k)
        if k > MAX_K:
            raise InvalidArgument(f"k={k} is more than the {MAX_K} that sqlite-vec can give")
        minimum = (
            -1.0
            if min_similarity is None
            else similarity_argument("min_similarity", min_similarity)
        )
        if model_version is None:
            versions = self.model_versions()
            if len(versions) > 1:
                raise ModelMismatch(
                    f"{self._file.path} holds vectors of {len(versions)} models, which cannot be"
                    f" compared: pass model_version, one of {', '.join(map(repr, versions))}"
                )
            model_version = next(iter(versions), UNSPECIFIED)
        bindings: dict[str, Any] = {"vector": blob, "k": k, "model_version": model_version}
        query = _SEARCH.format(among="")
        if ids is not None:
            bindings["ids"] = json.dumps([id_argument("ids", id) for id in ids])
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
            raise DimensionMismatch(
                f"{self._file.path} holds vectors of {existing} dimensions, not"
                f" {self.dimensions}: open it with dimensions={existing}, or use another file"
            )


def _unknown_vector(id: str) -> UnknownId:
    return UnknownId(f"there is no vector with id={id!r}")


def _vector_bytes(vectors: Iterable[ArrayLike], dimensions: int) -> list[bytes]:
    """Return vectors in sqlite-vec's format.

    Raises:
        InvalidArgument: one is not a flat list of `dimensions` finite numbers, or is too short or
            too long to have a direction.
    """
    if not isinstance(vectors, Iterable):
        raise InvalidArgument(f"vectors={vectors!r} is not a list of vectors")
    return [
        vector_array(f"vectors[{number}]", vector, dimensions).astype(FLOAT).tobytes()
        for number, vector in enumerate(vectors)
    ]
