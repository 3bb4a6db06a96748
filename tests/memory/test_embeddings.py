"""The real model: the same text gives the same unit vector, in every thread and process."""

import json
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from asgiref.sync import async_to_sync

from memory import embeddings, model_files
from memory.embeddings import Embedder, aembed, embed, get_embedder, model_version
from memory.exceptions import EmbeddingModelError, InvalidArgument
from memory.model_files import ModelFiles

ROOT = Path(__file__).resolve().parents[2]


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def in_a_process(code, **environment):
    """Run code in a process of its own, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", "import django; django.setup()\n" + textwrap.dedent(code)],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "konstruct.settings", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_vectors_are_units_of_384_dimensions():
    vectors = embed(["My sister lives in Lisbon.", "", " ", "\x00", "😀", "a\ud800b", "x" * 50_000])
    assert [len(vector) for vector in vectors] == [384] * 7
    assert [math.isclose(math.hypot(*vector), 1, abs_tol=1e-5) for vector in vectors] == [True] * 7
    assert all(type(x) is float for x in vectors[0])


def test_vectors_know_what_is_alike():
    sister, alike, other = embed(
        ["My sister lives in Lisbon.", "Where does my sister live?", "The train was late."]
    )
    assert cosine(sister, alike) > 0.55 > 0.2 > cosine(sister, other)


def test_order_and_company_do_not_matter():
    texts = [f"{'word ' * (n % 40)}{n}" for n in range(150)] + ["3", "3"]
    together = get_embedder().encode(texts)
    assert together.shape == (152, 384)
    assert together.dtype == np.float32
    assert np.array_equal(together[150], together[151])
    for position in (0, 39, 149, 150):
        assert np.allclose(together[position], embed([texts[position]])[0], atol=1e-5)


def test_batches_hold_every_position_once_and_what_encode_gives():
    texts = [f"{'word ' * (n % 40)}{n}" for n in range(150)] + ["3", "3"]
    together = get_embedder().encode(texts)
    batches = list(get_embedder().encode_batches(texts))
    assert len(batches) > 2
    assert sorted(position for positions, _ in batches for position in positions) == [*range(152)]
    for positions, vectors in batches:
        assert np.allclose(together[positions], vectors, atol=1e-6)


def test_who_leaves_batches_unread_leaves_nobody_waiting():
    batches = get_embedder().encode_batches([f"{'word ' * (n % 40)}{n}" for n in range(300)])
    next(batches)
    batches.close()
    assert len(embed(["Hello"])) == 1


def test_no_texts_give_no_vectors():
    assert embed([]) == []


@pytest.mark.parametrize("texts", ["one text", [b"bytes"], [None], ["fine", 7]])
def test_what_is_not_a_list_of_texts_is_refused(texts):
    with pytest.raises(InvalidArgument):
        embed(texts)


def test_the_model_is_loaded_once_however_many_ask(monkeypatch, at_once):
    loaded = []

    class Slow:
        def __init__(self, files):
            loaded.append(files)

    monkeypatch.setattr(embeddings, "_embedder", None)
    monkeypatch.setattr(embeddings, "Embedder", Slow)
    found = at_once(lambda _: get_embedder(), list(range(8)))
    assert len(loaded) == 1
    assert len(set(map(id, found))) == 1


def test_many_threads_get_the_vectors_of_their_own_texts(at_once):
    texts = [f"The number of the day is {n}." for n in range(16)]
    alone = embed(texts)
    found = at_once(lambda text: embed([text])[0], texts)
    assert np.allclose(alone, found, atol=1e-5)


def test_the_asynchronous_twin_does_the_same():
    assert async_to_sync(aembed)(["Hello"]) == embed(["Hello"])


def test_the_version_names_the_model_and_its_weights():
    assert model_version() == "all-MiniLM-L6-v2@6fceb34132ad"
    assert get_embedder().version == model_version()


def test_other_weights_are_another_version(tmp_path):
    for name, weights in (("a", b"1"), ("b", b"2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(weights)
    first, second = (model_files._model_files(str(tmp_path / name)) for name in "ab")
    assert first.path == tmp_path / "a"
    assert first.version.startswith("a@")
    assert first.version.split("@")[1] != second.version.split("@")[1]


def test_a_model_can_be_given_by_its_path(settings):
    settings.EMBEDDING_MODEL = str(model_files._packaged())
    files = model_files.model_files()
    assert files.version == "model@6fceb34132ad"
    assert np.allclose(Embedder(files).encode(["Hello"]), embed(["Hello"]), atol=1e-6)


def test_a_model_that_is_nowhere_is_named(settings, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    settings.EMBEDDING_MODEL = "nobody/no-such-model"
    with pytest.raises(EmbeddingModelError, match="EMBEDDING_MODEL='nobody/no-such-model'"):
        model_version()


def test_a_folder_without_weights_is_named(tmp_path):
    with pytest.raises(EmbeddingModelError, match="holds no weights"):
        model_files._model_files(str(tmp_path))


def test_weights_that_are_no_model_are_named(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(EmbeddingModelError, match=f"the embedding model in {tmp_path} cannot be"):
        Embedder(ModelFiles(path=tmp_path, version="nonsense"))


def test_a_model_of_another_size_is_refused(tmp_path):
    from sentence_transformers import SentenceTransformer, models

    words = models.Transformer(str(model_files._packaged()))
    narrow = models.Dense(384, 8)
    SentenceTransformer(modules=[words, models.Pooling(384), narrow]).save(str(tmp_path))
    with pytest.raises(EmbeddingModelError, match="has 8 dimensions; the tables hold 384"):
        Embedder(ModelFiles(path=tmp_path, version="narrow"))


@pytest.fixture(scope="module")
def fresh_process():
    """What a process that starts tells: of what it loads, and of its fork once it has embedded."""
    return json.loads(
        in_a_process(
            """
            import json, os, socket, sys
            import memory.tasks, memory.long_term, memory.embeddings
            memory.embeddings.model_version()
            told = {
                "loaded": [n for n in ("torch", "sentence_transformers") if n in sys.modules]
            }

            def refuse(*args, **kwargs):
                raise AssertionError("asked for the network")

            socket.socket.connect = socket.getaddrinfo = refuse
            from memory import embeddings
            texts = [f"The number of the day is {n}." for n in range(64)]
            before = embeddings.embed(texts)
            told["dimensions"] = len(before[0])

            embeddings.get_embedder()._tokenizing.acquire()
            child = os.fork()
            if child == 0:
                after = embeddings.get_embedder().encode(texts)
                os._exit(0 if abs(after - before).max() < 1e-5 else 3)
            told["fork"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            print(json.dumps(told))
            """,
            HF_HUB_OFFLINE="1",
        )
    )


def test_nothing_heavy_is_loaded_before_it_is_needed_and_nothing_from_a_network(fresh_process):
    """Neither by a process that starts, nor by one that only asks for the version."""
    assert (fresh_process["loaded"], fresh_process["dimensions"]) == ([], 384)


def test_a_fork_of_a_process_that_has_embedded_can_embed(fresh_process):
    """Torch would wait for ever for threads that were not copied."""
    assert fresh_process["fork"] == 0
