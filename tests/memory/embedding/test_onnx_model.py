"""ONNX Runtime gives the word pieces and vectors of sentence-transformers."""

import os
import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings, strategies as st

from memory.embedding.embedder import GRAPHS, OnnxModel, model_files
from tests.konstruct.running import run_python
from tests.memory.embedding import bert_graph

pytestmark = pytest.mark.long

SCRIPTS = [
    "My sister lives in Lisbon, and she won't move before March 3rd, 2026.",
    "Ça m’a coûté 12,50 € – naïve façade, œuvre, Ærøskøbing, Łódź, İstanbul.",
    "Моя сестра живёт в Лиссабоне.",
    "Η αδελφή μου μένει στη Λισαβόνα.",
    "أختي تعيش في لشبونة ولن تنتقل قبل مارس.",
    "אחותי גרה בליסבון.",
    "मेरी बहन लिस्बन में रहती है।",
    "น้องสาวของฉันอาศัยอยู่ที่ลิสบอน",
    "我妹妹住在里斯本。",
    "妹はリスボンに住んでいます。ｶﾀｶﾅ",
    "내 여동생은 리스본에 산다.",
    "ჩემი და ლისაბონში ცხოვრობს. Քույրս ապրում է Լիսաբոնում։",
    "👩‍👩‍👧‍👦 🇵🇹 ✈️ ½ ² ™ ﬁ",
    "e\u0301 \u200b\u200d\ufeff\u00ad \u202etxet \u0000 \ufffd \t\r\n\u2028",
    "[CLS] [SEP] [MASK] [PAD] [UNK] ##ing </s>",
    "SELECT * FROM memory_message WHERE id = 'x'; -- {\"a\": [1, 2.5e-7]}",
    "https://example.com/a/very/long/path?with=parameters&and=more#fragment",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "x" * 5000,
    "",
    " ",
]


@pytest.fixture(scope="module")
def served():
    files = model_files("")
    return OnnxModel(files.path, GRAPHS / f"{files.digest}.onnx")


@pytest.fixture(scope="module")
def reference():
    # Every worker reads this file, and torch takes seconds to import.
    from memory.embedding.embedder import TorchModel

    return TorchModel(model_files("").path)


def texts_of_all_lengths(step: int) -> list[str]:
    """Return texts from few word pieces to over the limit, with words of all scripts."""
    chance = random.Random(7)
    words = " ".join(SCRIPTS).split()
    return [" ".join(chance.choices(words, k=count)) for count in range(1, 280, step)]


def vectors(model, texts, size):
    tokenized = model.tokenize(texts)
    batches = [tokenized[first : first + size] for first in range(0, len(texts), size)]
    return np.concatenate([model.embed(batch) for batch in batches])


def test_vectors_are_those_of_sentence_transformers(served, reference):
    """Alone, and in batches whose shorter texts are padded."""
    texts = [*SCRIPTS, *texts_of_all_lengths(step=9)]
    assert {len(text.ids) for text in served.tokenize(texts)} > {2, 3, 256}
    expected = vectors(reference, texts, 1)
    for size in (1, 8):
        actual = vectors(served, texts, size)
        assert (actual * expected).sum(axis=1).min() > 0.99999
        assert np.abs(np.linalg.norm(actual, axis=1) - 1).max() < 1e-5
        assert actual.dtype == np.float32


def test_word_pieces_are_those_of_sentence_transformers(served, reference):
    texts = [*SCRIPTS, *texts_of_all_lengths(step=3)]
    assert served.tokenize(texts) == reference.tokenize(texts)
    assert [*map(served.count_tokens, texts)] == [*map(reference.count_tokens, texts)]
    assert (served.max_tokens, served.dimensions) == (reference.max_tokens, reference.dimensions)


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_word_pieces_of_any_text_are_those_of_sentence_transformers(served, reference, text):
    assert served.tokenize([text]) == reference.tokenize([text])


def test_graph_equals_the_output_of_its_builder(tmp_path, monkeypatch):
    """A new release of the package, or a change of the builder, needs a new graph."""
    monkeypatch.setattr(bert_graph, "GRAPHS", tmp_path)
    files = model_files("")
    bert_graph.write_graph(files.path, files.digest)
    (built,) = tmp_path.iterdir()
    assert built.name == "6fceb34132ad.onnx"
    assert load_graph(built) == load_graph(GRAPHS / built.name)


def load_graph(path):
    return onnx.load(path, load_external_data=False)


def test_a_model_of_another_kind_has_no_graph(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "mpnet", "hidden_act": "gelu"}')
    with pytest.raises(ValueError, match="only BERT can be built"):
        bert_graph.build_graph(tmp_path)


def test_no_telemetry_is_collected_or_sent(tmp_path: Path) -> None:
    """By default ONNX Runtime stores a machine id and a queue of events under HOME."""
    code = "from memory.embedding.embedder import embed; print(len(embed(['a text'])[0]))"
    environment = {**os.environ, "HOME": str(tmp_path), "ORT_DISABLE_TELEMETRY": "0"}
    environment.pop("XDG_CACHE_HOME", None)
    ran = run_python("-c", code, env=environment)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "384\n", "")
    assert list(tmp_path.rglob("*")) == []
