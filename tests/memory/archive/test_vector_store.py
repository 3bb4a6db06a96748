"""Vectors: exact search by cosine, separate models, and no incomparable vectors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory import archive
from memory.exceptions import InvalidArgument


@pytest.fixture
def store(path: Path) -> Iterator[archive.VectorStore]:
    with archive.VectorStore(path, dimensions=3) as store:
        yield store


def random_vectors(count: int, dimensions: int = 384, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)


def test_the_table_is_a_vec0_of_384_floats(path: Path) -> None:
    with archive.VectorStore(path) as store:
        assert store.dimensions == 384
    with archive.SQLiteManager(path) as file:
        (sql,) = file.rows("SELECT sql FROM sqlite_schema WHERE name = 'vectors'")[0]
    assert "USING vec0" in sql
    assert "embedding FLOAT[384] distance_metric=cosine" in sql


def test_vectors_survive_a_restart(path: Path) -> None:
    vectors = random_vectors(3)
    with archive.VectorStore(path) as store:
        first = store.store(vectors[0], model_version="m@1")
        rest = store.store_batch(vectors[1:], model_version="m@1")
    with archive.VectorStore(path) as store:
        assert store.count() == 3
        for id, vector in zip([first, *rest], vectors, strict=True):
            assert store.get(id) == archive.StoredVector(id, tuple(vector.tolist()), "m@1")
            (hit,) = store.search(vector, 1)
            assert (hit.id, hit.model_version) == (id, "m@1")
            assert hit.similarity == pytest.approx(1, abs=1e-6)


def test_results_are_ordered_by_similarity(store: archive.VectorStore) -> None:
    store.store([0, 2, 0], id="orthogonal")
    store.store([-1, 0, 0], id="opposite")
    store.store([5, 0, 0], id="same direction")
    store.store([1, 1, 0], id="half way")

    hits = store.search([1, 0, 0])
    assert [(hit.id, round(hit.similarity, 6)) for hit in hits] == [
        ("same direction", 1.0),
        ("half way", 0.707107),
        ("orthogonal", 0.0),
        ("opposite", -1.0),
    ]
    assert store.search([1, 0, 0], 2) == hits[:2]
    assert store.search([1, 0, 0], min_similarity=0.5) == hits[:2]
    assert store.search([1, 0, 0], min_similarity=-1) == hits


def test_search_equals_a_comparison_of_all_vectors(path: Path) -> None:
    vectors, queries = random_vectors(3000), random_vectors(10, seed=1)
    with archive.VectorStore(path) as store:
        ids = store.store_batch(vectors)
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        for query in queries:
            cosines = unit @ (query / np.linalg.norm(query))
            best = np.argsort(-cosines)[:50]
            hits = store.search(query, 50)
            assert [hit.id for hit in hits] == [ids[n] for n in best]
            assert [hit.similarity for hit in hits] == pytest.approx(cosines[best], abs=1e-5)
        assert len(store.search(queries[0], 4096)) == 3000


def test_empty_store_finds_nothing(store: archive.VectorStore) -> None:
    assert store.search([1, 0, 0]) == []
    assert (store.count(), store.model_versions()) == (0, {})
    assert store.store_batch([]) == []


def test_vectors_of_models_are_separate(store: archive.VectorStore) -> None:
    store.store([1, 0, 0], id="old", model_version="m@1")
    store.store_batch([[0, 1, 0], [1, 0, 0]], ids=["new", "new too"], model_version="m@2")

    assert store.model_versions() == {"m@1": 1, "m@2": 2}
    assert [store.count(), store.count("m@1"), store.count("m@2"), store.count("m@3")] == [
        3,
        1,
        2,
        0,
    ]
    assert [hit.id for hit in store.search([1, 0, 0], model_version="m@1")] == ["old"]
    assert [hit.id for hit in store.search([1, 0, 0], model_version="m@2")] == ["new too", "new"]
    assert store.search([1, 0, 0], model_version="m@3") == []
    with pytest.raises(archive.ModelMismatch, match=r"2 models, .* one of 'm@1', 'm@2'"):
        store.search([1, 0, 0])

    store.delete("old")
    assert store.search([1, 0, 0], 1) == [archive.VectorHit("new too", 1.0, "m@2")]


def test_deleted_vector_is_removed_and_its_id_is_free(store: archive.VectorStore) -> None:
    store.store_batch([[1, 0, 0], [0, 1, 0]], ids=["a", "b"])
    store.delete("a")
    assert [hit.id for hit in store.search([1, 0, 0])] == ["b"]
    for call in (store.get, store.delete):
        with pytest.raises(archive.UnknownId, match="there is no vector with id='a'"):
            call("a")
    store.store([0, 0, 1], id="a")
    assert store.get("a").vector == (0, 0, 1)


def test_batch_is_all_or_nothing(store: archive.VectorStore) -> None:
    store.store([1, 0, 0], id="taken")
    with pytest.raises(archive.DuplicateId, match="there is a vector with id='taken' already"):
        store.store_batch([[0, 1, 0], [0, 0, 1]], ids=["new", "taken"])
    with pytest.raises(archive.DuplicateId, match="there is a vector with id='twice' already"):
        store.store_batch([[0, 1, 0], [0, 0, 1]], ids=["twice", "twice"])
    with pytest.raises(InvalidArgument, match="1 ids were given for 2 vectors"):
        store.store_batch([[0, 1, 0], [0, 0, 1]], ids=["one"])
    with pytest.raises(InvalidArgument, match=r"vectors\[1\] has 2 dimensions, not 3"):
        store.store_batch([[0, 1, 0], [0, 0]])
    assert (store.count(), len(store.search([1, 1, 1]))) == (1, 1)


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([1, 2], r"vectors\[0\] has 2 dimensions, not 3"),
        ([1, NAN, 0], r"vectors\[0\]\[1\]=nan is not a finite number"),
        ([1, 0, -INFINITY], r"\[2\]=-inf is not a finite number"),
        ([0, 0, 0], r"\] has no direction: its squared length is 0.0"),
        ([1e30, 0, 0], r"\] has no direction: its squared length is inf"),
        (["a", "b", "c"], r"is not a flat list of numbers: .*U1"),
        ([1, [2], 3], "is not a flat list of numbers"),
        (None, "is not a flat list of numbers"),
    ],
)
def test_a_vector_that_cannot_be_compared_is_refused(
    store: archive.VectorStore, vector: Any, message: str
) -> None:
    for call in (store.store, store.search):
        with pytest.raises(InvalidArgument, match=message):
            call(vector)
    with pytest.raises(InvalidArgument):
        store.store_batch([[1, 2, 3], vector])
    assert store.count() == 0


@pytest.mark.parametrize("vectors", [None, 1, np.ones(3), np.ones((2, 2, 3)), "abc"])
def test_invalid_batch_is_refused(store: archive.VectorStore, vectors: Any) -> None:
    with pytest.raises(
        InvalidArgument, match=r"is not a flat list of numbers|is not a list of vectors"
    ):
        store.store_batch(vectors)


def test_another_number_of_dimensions_is_refused(path: Path) -> None:
    with archive.VectorStore(path, dimensions=8) as store:
        store.store(np.ones(8), id="a")
    with pytest.raises(
        archive.DimensionMismatch, match="holds vectors of 8 dimensions, not 384: open it"
    ):
        archive.VectorStore(path)
    with archive.VectorStore(path, dimensions=8) as store:
        assert store.get("a").vector == (1.0,) * 8
    for dimensions in (0, 8193, 1.5):
        with pytest.raises(InvalidArgument, match=f"dimensions={dimensions} is "):
            archive.VectorStore(path, dimensions)  # type: ignore[arg-type]  # one is wrong on purpose


def test_deleted_message_deletes_its_vector(path: Path) -> None:
    with archive.SQLiteManager(path) as file, archive.VectorStore(file, dimensions=3) as vectors:
        conversation = file.create_conversation()
        for n in range(3):
            vectors.store([1, n, 0], id=f"v{n}")
            file.add_message(conversation, "user", "x", id=f"m{n}", embedding_id=f"v{n}")
        vectors.store([0, 0, 1], id="of no message")

        file.delete_message("m0")
        assert [hit.id for hit in vectors.search([1, 0, 0])] == ["v1", "v2", "of no message"]
        vectors.delete("v1")
        assert file.get_message("m1").embedding_id is None
        file.delete_conversation(conversation)
        assert [hit.id for hit in vectors.search([1, 0, 0])] == ["of no message"]


def test_a_hit_gives_back_the_message_that_its_vector_names(path: Path) -> None:
    with archive.SQLiteManager(path) as file, archive.VectorStore(file, dimensions=3) as store:
        conversation = file.create_conversation()
        file.add_message(conversation, "user", "We fly.", id="m1")
        file.add_message(conversation, "user", "On Friday.", id="m2", embedding_id="owned")
        store.store([1, 0, 0], id="named", message_id="m1")
        store.store([1, 1, 0], id="owned")
        store.store_batch(
            [[1, 1, 1], [0, 1, 1]], ids=["elsewhere", "of nothing"], message_ids=["m9", None]
        )

        hits = store.search([1, 0, 0], 4)

        assert [(hit.id, hit.message_id, hit.content) for hit in hits] == [
            ("named", "m1", "We fly."),
            ("owned", "m2", "On Friday."),
            ("elsewhere", "m9", None),
            ("of nothing", None, None),
        ]
        assert store.search([1, 0, 0], 4, ids=["named"]) == hits[:1]
        assert store.get("named").message_id == "m1"
        assert store.get("owned").message_id == "m2"

        file.delete_message("m1")
        file.delete_message("m2")
        assert [hit.id for hit in store.search([1, 0, 0], 4)] == ["elsewhere", "of nothing"]
