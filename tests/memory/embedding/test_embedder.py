"""The real model: the same text gives the same unit vector, in every thread and process."""

import json
import math
import os
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from memory.embedding import embedder
from memory.embedding.embedder import Embedder, ModelFiles, embed, get_embedder, model_version
from memory.exceptions import EmbeddingModelError, InvalidArgument
from tests.konstruct.running import run_python

ROOT = Path(__file__).resolve().parents[3]


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def in_a_process(code, **environment):
    """Run code in a separate process. Return its output."""
    done = run_python(
        "-c",
        "import django; django.setup()\n" + textwrap.dedent(code),
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "konstruct.settings", **environment},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_vectors_are_units_of_384_dimensions():
    vectors = embed(["My sister lives in Lisbon.", "", " ", "\x00", "😀", "a\ud800b", "x" * 50_000])
    assert [len(vector) for vector in vectors] == [384] * 7
    assert [math.isclose(math.hypot(*vector), 1, abs_tol=1e-5) for vector in vectors] == [True] * 7
    assert all(type(x) is float for x in vectors[0])
    assert embed([]) == []


def test_similar_texts_have_similar_vectors():
    sister, alike, other = embed(
        ["My sister lives in Lisbon.", "Where does my sister live?", "The train was late."]
    )
    assert cosine(sister, alike) > 0.55 > 0.2 > cosine(sister, other)


@pytest.mark.slow
def test_order_company_and_batches_do_not_matter():
    texts = [f"{'word ' * (n % 40)}{n}" for n in range(150)] + ["3", "3"]
    together = get_embedder().encode(texts)
    assert together.shape == (152, 384)
    assert together.dtype == np.float32
    assert np.array_equal(together[150], together[151])
    for position in (0, 39, 149, 150):
        assert np.allclose(together[position], embed([texts[position]])[0], atol=1e-5)
    batches = list(get_embedder().encode_batches(texts))
    assert len(batches) > 2
    assert sorted(position for positions, _ in batches for position in positions) == [*range(152)]
    for positions, vectors in batches:
        assert np.allclose(together[positions], vectors, atol=1e-6)


def test_unread_batches_do_not_block_other_callers():
    batches = get_embedder().encode_batches([f"{'word ' * (n % 40)}{n}" for n in range(300)])
    next(batches)
    batches.close()
    assert len(embed(["Hello"])) == 1


@pytest.mark.parametrize("texts", ["one text", [b"bytes"], [None], ["fine", 7]])
def test_value_other_than_a_list_of_texts_is_refused(texts):
    with pytest.raises(InvalidArgument):
        embed(texts)


def test_model_is_loaded_once_for_concurrent_calls(monkeypatch, run_concurrently):
    loaded = []

    class Slow:
        def __init__(self, files):
            loaded.append(files)
            time.sleep(0.1)

    monkeypatch.setattr(embedder, "_embedder", None)
    monkeypatch.setattr(embedder, "Embedder", Slow)
    found = run_concurrently(lambda _: get_embedder(), list(range(8)))
    assert len(loaded) == 1
    assert len(set(map(id, found))) == 1


def test_many_threads_get_the_vectors_of_their_own_texts(run_concurrently):
    texts = [f"The number of the day is {n}." for n in range(16)]
    alone = embed(texts)
    found = run_concurrently(lambda text: embed([text])[0], texts)
    assert np.allclose(alone, found, atol=1e-5)


def test_the_version_names_the_model_and_its_weights():
    assert model_version() == "all-MiniLM-L6-v2@6fceb34132ad"
    assert get_embedder().version == model_version()


def test_model_can_be_a_path(settings):
    settings.EMBEDDING_MODEL = str(embedder._packaged_path())
    files = embedder.model_files()
    assert files.version == "model@6fceb34132ad"
    assert np.allclose(Embedder(files).encode(["Hello"]), embed(["Hello"]), atol=1e-6)


def test_missing_model_is_named_in_the_error(settings, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    settings.EMBEDDING_MODEL = "nobody/no-such-model"
    with pytest.raises(EmbeddingModelError, match="EMBEDDING_MODEL='nobody/no-such-model'"):
        model_version()


def test_a_folder_without_weights_is_named(tmp_path):
    with pytest.raises(EmbeddingModelError, match="holds no weights"):
        embedder._model_files(str(tmp_path))


@pytest.mark.long
def test_weights_that_are_no_model_are_named(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(EmbeddingModelError, match=f"the embedding model in {tmp_path} cannot be"):
        Embedder(ModelFiles(path=tmp_path, version="nonsense"))


def test_missing_library_of_another_model_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(EmbeddingModelError, match=r"needs torch.*install requirements/models\.txt"):
        Embedder(ModelFiles(path=tmp_path, version="other@0"))


ITS_CONSTANTS = """
languages = ["en"]
cosine_weight = 1.0
gates = {hybrid = {bias = -8.0, cosine = 9.0}, vector = {bias = -8.0, cosine = 9.0}}
calibrations = {hybrid = {slope = 1.0, shift = 0.0}, vector = {slope = 1.0, shift = 0.0}}
"""


@pytest.mark.parametrize(("text", "other"), [("😀😀🎉", "🍕🍕"), ("ሰላም ለዓለም", "የቡና ቤት")])
def test_texts_of_unknown_word_pieces_are_compared_by_letters(text, other):
    alone, again, query, another, english = get_embedder().encode(
        [text, f"{text} ", text[:-1], other, "peace to the world"]
    )
    assert alone @ again > 0.99
    assert alone @ query > 0.5
    assert abs(alone @ another) < 0.3
    assert abs(alone @ english) < 0.3


@pytest.fixture(scope="module")
def packaged():
    """The packaged model in sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(embedder._packaged_path()), device="cpu")


@pytest.mark.long
def test_another_model_is_served_by_sentence_transformers(tmp_path, settings, packaged):
    packaged.save(str(tmp_path / "another"))
    settings.EMBEDDING_MODEL = str(tmp_path / "another")
    files = embedder.model_files()
    assert embedder.needs_torch(files)
    with pytest.raises(EmbeddingModelError, match=r"recall is not fitted .* docs/recall\.md"):
        Embedder(files)
    (tmp_path / "another" / embedder.FITTED_FILE).write_text(ITS_CONSTANTS)
    texts = ["Hello", "", "word " * 400, *(f"{'word ' * n}{n}" for n in range(40))]
    other = Embedder(files)
    assert (other.max_tokens, other.count_tokens("word " * 400)) == (256, 402)
    assert np.allclose(other.encode(texts), get_embedder().encode(texts), atol=1e-5)


@pytest.fixture(scope="module")
def fresh_process():
    """Report loaded modules of a new process, and forks after its first embedding."""
    return json.loads(
        in_a_process(
            """
            import json, os, socket, sys, threading
            import memory.tasks, memory.long_term
            from memory.embedding import embedder
            embedder.model_version()

            def loaded(*names):
                return [name for name in names if name in sys.modules]

            told = {"at the start": loaded("onnxruntime", "tokenizers", "torch", "transformers")}

            def refuse(*args, **kwargs):
                raise AssertionError("asked for the network")

            socket.socket.connect = socket.getaddrinfo = refuse
            texts = [f"The number of the day is {n}." for n in range(64)]
            before = embedder.get_embedder().encode(texts)
            told["dimensions"] = before.shape[1]
            told["torch"] = loaded("torch", "transformers", "sentence_transformers", "onnx")

            def embed_on():
                while True:
                    embedder.get_embedder().encode(texts)

            threading.Thread(target=embed_on, daemon=True).start()
            told["forks"] = []
            for _ in range(5):
                child = os.fork()
                if child == 0:
                    after = embedder.get_embedder().encode(texts)
                    os._exit(0 if abs(after - before).max() < 1e-5 else 3)
                told["forks"].append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            print(json.dumps(told))
            """,
            HF_HUB_OFFLINE="1",
        )
    )


@pytest.mark.long
def test_import_loads_no_large_library_and_opens_no_connection(fresh_process):
    """Neither at start, nor when only the version is read."""
    assert (fresh_process["at the start"], fresh_process["dimensions"]) == ([], 384)


@pytest.mark.slow
def test_the_packaged_model_is_served_without_torch(fresh_process):
    assert fresh_process["torch"] == []


@pytest.mark.long
def test_a_fork_of_a_process_that_is_embedding_can_embed(fresh_process):
    assert fresh_process["forks"] == [0] * 5


@pytest.mark.long
def test_child_processes_share_the_loaded_model():
    output = in_a_process(
        """
        import os
        from memory.embedding import embedder
        embedder.load_before_fork()
        assert embedder.is_loaded()
        child = os.fork()
        if child == 0:
            embedder.Embedder = None  # nothing is loaded again
            os._exit(len(embedder.embed(["Hello"])[0]) % 256)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert output == "128"


@pytest.mark.long
def test_parent_process_survives_a_broken_model(tmp_path):
    output = in_a_process(
        """
        from memory.embedding import embedder
        embedder.load_before_fork()
        print(embedder.is_loaded())
        """,
        EMBEDDING_MODEL=str(tmp_path),
    )
    assert output == "False"
