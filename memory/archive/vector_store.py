"""Vectors in an archive, found by their cosine similarity."""

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

import apsw
from numpy.typing import ArrayLike

from memory.archive import schema
from memory.archive.closing import Closing
from memory.archive.exceptions import DimensionMismatch, DuplicateId, ModelMismatch, UnknownId
from memory.archive.records import StoredVector, VectorHit, new_id
from memory.archive.sqlite_manager import SQLiteManager
from memory.archive.vectors import batch_bytes, vector_bytes, vector_of
from memory.arguments import count_argument, id_argument, similarity_argument
from memory.conf import EMBEDDING_DIMENSIONS
from memory.exceptions import InvalidArgument

# Limits of sqlite-vec 0.1.9.
MAX_DIMENSIONS = 8192
MAX_K = 4096

# Vectors that were stored without saying which model made them are of one unknown model.
UNSPECIFIED = "unspecified"

# Up to this many ids are looked up and compared one by one: 26 ms for 500 of 100,000 vectors where
# vec0, which reads all of them, took 159 (benchmarks/archive.py, on a busy machine).
FEW_IDS = 1000

# The nearest are found before anything is joined: vec0 takes its conditions from this query alone.
_SEARCH = """
WITH nearest AS MATERIALIZED (
    SELECT rowid AS number, distance FROM vectors
    WHERE embedding MATCH :vector AND k = :k AND model_version = :model_version {among}
)
SELECT id, 1 - distance FROM nearest JOIN embeddings USING (number) ORDER BY distance, number
"""
_AMONG = """
AND rowid IN (
    SELECT number FROM embeddings WHERE id IN (SELECT value FROM json_each(:ids))
)
"""
_SEARCH_AMONG_FEW = """
SELECT id, 1 - vec_distance_cosine(vectors.embedding, :vector) AS similarity
FROM (SELECT DISTINCT value AS id FROM json_each(:ids))
CROSS JOIN embeddings USING (id)
CROSS JOIN vectors ON vectors.rowid = embeddings.number
WHERE embeddings.model_version = :model_version
ORDER BY similarity DESC, number LIMIT :k
"""


class VectorStore(Closing):
    """Vectors of one size in an archive, each with the version of the model that made it.

    Give it a path, or a SQLiteManager to share its file, connections and transactions.

    Raises:
        DimensionMismatch: the file holds vectors of another size.
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
        self, vector: ArrayLike, *, id: str | None = None, model_version: str = UNSPECIFIED
    ) -> str:
        """Store a vector of `dimensions` numbers, as it is, and return its id.

        Raises:
            InvalidArgument: it has another size, a number that is not finite, or no direction.
            DuplicateId: there is a vector of this id.
        """
        blob = vector_bytes("vector", vector, self.dimensions)
        return self._insert([blob], None if id is None else [id], model_version)[0]

    def store_batch(
        self,
        vectors: Iterable[ArrayLike],
        *,
        ids: Sequence[str] | None = None,
        model_version: str = UNSPECIFIED,
    ) -> list[str]:
        """Store all of these vectors, or none, and return their ids. Errors as for `store`."""
        return self._insert(batch_bytes(vectors, self.dimensions), ids, model_version)

    def get(self, id: str) -> StoredVector:
        """The vector of this id.

        Raises:
            UnknownId: there is none.
        """
        rows = self._file.rows(
            "SELECT v.embedding, e.model_version FROM embeddings e"
            " JOIN vectors v ON v.rowid = e.number WHERE e.id = ?",
            (id_argument("id", id),),
        )
        if not rows:
            raise _unknown_vector(id)
        blob, model_version = rows[0]
        return StoredVector(id=id, vector=vector_of(blob), model_version=model_version)

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
        """The `k` vectors (up to 4,096) of greatest cosine similarity, best first.

        Every vector is compared, so that none is missed. Only vectors of `model_version` are, and
        only those of `ids` where ids are given.

        Raises:
            InvalidArgument: the vector could not be stored here either, or k is out of range.
            ModelMismatch: no model_version is given, and there are vectors of several.
        """
        blob = vector_bytes("vector", vector, self.dimensions)
        k = count_argument("k", k)
        if k > MAX_K:
            raise InvalidArgument(f"k={k} is more than the {MAX_K} that sqlite-vec can give")
        least = (
            -1.0
            if min_similarity is None
            else similarity_argument("min_similarity", min_similarity)
        )
        if model_version is None:
            model_version = self._only_model_version()
        bindings: dict[str, Any] = {"vector": blob, "k": k, "model_version": model_version}
        query = _SEARCH.format(among="")
        if ids is not None:
            among = [id_argument("ids", id) for id in ids]
            bindings["ids"] = json.dumps(among)
            query = _SEARCH_AMONG_FEW if len(among) <= FEW_IDS else _SEARCH.format(among=_AMONG)
        rows = self._file.rows(query, bindings)
        # Rounding in single precision can step over the ends of the scale.
        hits = [VectorHit(id, min(1.0, max(-1.0, score)), model_version) for id, score in rows]
        return [hit for hit in hits if hit.similarity >= least]

    def count(self, model_version: str | None = None) -> int:
        """How many vectors there are, of one model or of all."""
        if model_version is None:
            return int(self._file.rows("SELECT count(*) FROM embeddings")[0][0])
        return self.model_versions().get(model_version, 0)

    def model_versions(self) -> dict[str, int]:
        """How many vectors there are of each model."""
        return dict(
            self._file.rows("SELECT model_version, count(*) FROM embeddings GROUP BY 1 ORDER BY 1")
        )

    def close(self) -> None:
        """Let go of the file, unless it is a SQLiteManager's."""
        if self._owns_file:
            self._file.close()

    def _require_table(self) -> None:
        with self._file.snapshot() as connection:
            recorded = schema.recorded_dimensions(connection)
        if recorded is None:
            with self._file.transaction() as connection:
                recorded = schema.make_vector_table(connection, self.dimensions)
        if recorded != self.dimensions:
            raise DimensionMismatch(
                f"{self._file.path} holds vectors of {recorded} dimensions, not"
                f" {self.dimensions}: open it with dimensions={recorded}, or use another file"
            )

    def _insert(
        self, blobs: list[bytes], ids: Sequence[str] | None, model_version: str
    ) -> list[str]:
        id_argument("model_version", model_version)
        if ids is None:
            ids = [new_id() for _ in blobs]
        elif len(ids) != len(blobs):
            raise InvalidArgument(f"{len(ids)} ids were given for {len(blobs)} vectors")
        ids = [id_argument("id", id) for id in ids]
        with self._file.transaction() as connection:
            first = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM embeddings").get
            for number, id in enumerate(ids, first):
                try:
                    connection.execute(
                        "INSERT INTO embeddings VALUES (?, ?, ?)", (number, id, model_version)
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

    def _only_model_version(self) -> str:
        versions = self.model_versions()
        if len(versions) > 1:
            raise ModelMismatch(
                f"{self._file.path} holds vectors of {len(versions)} models, which cannot be"
                f" compared: say which by model_version, one of {', '.join(map(repr, versions))}"
            )
        return next(iter(versions), UNSPECIFIED)


def _unknown_vector(id: str) -> UnknownId:
    return UnknownId(f"there is no vector with id={id!r}")
