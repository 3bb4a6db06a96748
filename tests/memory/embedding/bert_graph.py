"""Build the ONNX graph of a BERT sentence encoder: a few kilobytes, without the weights.

    python -m tests.memory.embedding.bert_graph [FOLDER]

The script writes the graph of the packaged model, or of multilingual-e5-small in a folder that
`memory.embedding.multilingual` has written, into `memory/embedding/graphs/`. All vectors of the
latter have a cosine of .7 or more, so its graph subtracts their mean: that of the turns of
benchmarks/recall/languages. The graph refers to the bytes of each weight in `model.safetensors`:
the weights have one copy on disk, which ONNX Runtime maps into memory. It needs `onnx`
(requirements/dev.txt), and no torch.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from benchmarks.recall.languages import HELD_OUT, HISTORIES, LANGUAGES
from memory.embedding.embedder import GRAPHS, OnnxModel, model_files

WEIGHTS = "model.safetensors"
OPSET = 20  # the first one with Gelu
IR_VERSION = 10
# Operators of ONNX Runtime for transformers beyond the standard ones.
RUNTIME = "com.microsoft"


class _Graph:
    """Nodes and initializers of a new graph. An output has the name of its node."""

    def __init__(self, weights: Path) -> None:
        with weights.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            self._header: dict[str, Any] = json.loads(stream.read(length))
        self._data = 8 + length
        self.nodes: list[Any] = []
        self.initializers: list[TensorProto] = []

    def node(
        self, name: str, operator: str, *inputs: str, domain: str = "", **attributes: Any
    ) -> str:
        """Add a node and return its output's name."""
        self.nodes.append(
            helper.make_node(operator, inputs, [name], name=name, domain=domain, **attributes)
        )
        return name

    def constant(self, name: str, value: Any) -> str:
        """Add an initializer that is stored in the graph."""
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, name: str) -> str:
        """Add an initializer that is stored in the file of weights."""
        entry = self._header[name]
        if entry["dtype"] != "F32":
            raise ValueError(f"{name} is {entry['dtype']}: only weights of 32 bits can be mapped")
        first, end = entry["data_offsets"]
        tensor = TensorProto(
            name=name,
            data_type=TensorProto.FLOAT,
            dims=entry["shape"],
            data_location=TensorProto.EXTERNAL,
        )
        for key, value in (
            ("location", WEIGHTS),
            ("offset", self._data + first),
            ("length", end - first),
        ):
            tensor.external_data.add(key=key, value=str(value))
        self.initializers.append(tensor)
        return name

    def linear(self, name: str, x: str, weights: str) -> str:
        """x @ weight.T + bias, as torch stores a linear layer."""
        product = self.product(f"{name}.product", x, f"{weights}.weight")
        return self.node(name, "Add", product, self.weight(f"{weights}.bias"))

    def product(self, name: str, x: str, weight: str) -> str:
        """x @ weight.T. The weight is not transposed in memory, which would take a copy of it."""
        return self.node(name, "FusedMatMul", x, self.weight(weight), domain=RUNTIME, transB=1)

    def norm(self, name: str, x: str, weights: str, epsilon: float) -> str:
        """Normalize each row of x, then scale and shift it."""
        scale, shift = self.weight(f"{weights}.weight"), self.weight(f"{weights}.bias")
        return self.node(name, "LayerNormalization", x, scale, shift, axis=-1, epsilon=epsilon)


def build_graph(model: Path, mean: Any = None) -> ModelProto:
    """Build the graph of a BERT model, mean pooling and normalization.

    Inputs: `input_ids` and `attention_mask`, int64, shape (texts, word pieces). Output: `vectors`,
    float32, shape (texts, hidden size), each of length 1.

    Args:
        model: folder with `config.json` and `model.safetensors`.
        mean: a vector that is subtracted before the last normalization.

    Raises:
        ValueError: the model is not a BERT of the usual kind, or its weights are not of 32 bits.
    """
    config = json.loads((model / "config.json").read_text())
    kind = (config["model_type"], config["hidden_act"], config.get("position_embedding_type"))
    if kind not in {("bert", "gelu", "absolute"), ("bert", "gelu", None)}:
        raise ValueError(f"{model} holds a model of the kind {kind}: only BERT can be built")
    graph = _Graph(model / WEIGHTS)
    epsilon = config["layer_norm_eps"]
    x = _embeddings(graph, epsilon)
    # The operator masks the keys after the end of a text by its length.
    length = graph.node("mask", "Cast", "attention_mask", to=TensorProto.INT32)
    for number in range(config["num_hidden_layers"]):
        x = _layer(
            graph, f"encoder.layer.{number}", x, length, config["num_attention_heads"], epsilon
        )
    _pooled(graph, x, mean)
    texts, hidden = ["texts", "pieces"], ["texts", config["hidden_size"]]
    return helper.make_model(
        helper.make_graph(
            graph.nodes,
            "sentence-encoder",
            [
                helper.make_tensor_value_info("input_ids", TensorProto.INT64, texts),
                helper.make_tensor_value_info("attention_mask", TensorProto.INT64, texts),
            ],
            [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, hidden)],
            graph.initializers,
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(RUNTIME, 1)],
        ir_version=IR_VERSION,
    )


def _embeddings(graph: _Graph, epsilon: float) -> str:
    """Add and normalize word, type and position of each piece. One text has one type."""
    names = {
        part: graph.weight(f"embeddings.{part}_embeddings.weight")
        for part in ("word", "token_type", "position")
    }
    words = graph.node("words", "Gather", names["word"], "input_ids")
    first_type = graph.node(
        "type", "Gather", names["token_type"], graph.constant("first", np.int64(0))
    )
    pieces = graph.node("pieces", "Shape", "input_ids", start=1, end=2)
    zero = graph.constant("zero", np.array([0], np.int64))
    positions = graph.node("positions", "Slice", names["position"], zero, pieces, zero)
    typed = graph.node("typed", "Add", words, first_type)
    placed = graph.node("placed", "Add", typed, positions)
    return graph.norm("embeddings", placed, "embeddings.LayerNorm", epsilon)


def _layer(graph: _Graph, layer: str, x: str, mask: str, heads: int, epsilon: float) -> str:
    """Add one layer: attention and two linear layers, each with a residual and normalized."""
    parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
    products = [graph.product(part, x, f"{part}.weight") for part in parts]
    biases = [graph.weight(f"{part}.bias") for part in parts]
    bias = graph.node(f"{layer}.biases", "Concat", *biases, axis=0)
    attended = graph.node(
        f"{layer}.attended",
        "MultiHeadAttention",
        *products,
        bias,
        mask,
        domain=RUNTIME,
        num_heads=heads,
    )
    output = f"{layer}.attention.output"
    attention = graph.linear(f"{layer}.attention", attended, f"{output}.dense")
    added = graph.node(f"{layer}.attention.added", "Add", attention, x)
    x = graph.norm(f"{layer}.attention.normed", added, f"{output}.LayerNorm", epsilon)
    wide = graph.linear(f"{layer}.wide", x, f"{layer}.intermediate.dense")
    active = graph.node(f"{layer}.active", "Gelu", wide)
    narrow = graph.linear(f"{layer}.narrow", active, f"{layer}.output.dense")
    added = graph.node(f"{layer}.added", "Add", narrow, x)
    return graph.norm(f"{layer}.normed", added, f"{layer}.output.LayerNorm", epsilon)


def _pooled(graph: _Graph, x: str, mean_vector: Any) -> str:
    """Return the mean of a text's pieces without the padding, as a vector of length 1."""
    ones = graph.node("ones", "Cast", "attention_mask", to=TensorProto.FLOAT)
    last = graph.constant("last", np.array([2], np.int64))
    weights = graph.node("weights", "Unsqueeze", ones, last)
    pieces = graph.constant("pieces_axis", np.array([1], np.int64))
    kept = graph.node("kept", "Mul", x, weights)
    total = graph.node("total", "ReduceSum", kept, pieces, keepdims=0)
    count = graph.node("count", "ReduceSum", weights, pieces, keepdims=0)
    mean = graph.node("mean", "Div", total, count)
    length = graph.node("length", "ReduceL2", mean, pieces, keepdims=1)
    if mean_vector is None:
        return graph.node("vectors", "Div", mean, length)
    unit = graph.node("unit", "Div", mean, length)
    common = graph.constant("common", np.asarray(mean_vector, np.float32))
    centred = graph.node("centred", "Sub", unit, common)
    length = graph.node("centred_length", "ReduceL2", centred, pieces, keepdims=1)
    return graph.node("vectors", "Div", centred, length)


def mean_of_histories(model: Path) -> Any:
    """Return the mean vector of the turns of the histories that recall was developed with."""
    graph = model / "uncentred.onnx"
    graph.write_bytes(build_graph(model).SerializeToString())
    served = OnnxModel(model, graph)
    texts = [
        served.prompts["document"] + turn["text"]
        for language in LANGUAGES
        if language not in HELD_OUT
        for turn in json.loads((HISTORIES / f"{language}.json").read_text())["turns"]
    ]
    return np.mean([served.embed([text])[0] for text in served.tokenize(texts)], axis=0)


def write_graph(model: Path, digest: str, mean: Any = None) -> Path:
    """Build the model's graph into `graphs/`, under the digest of its weights."""
    path = GRAPHS / f"{digest}.onnx"
    path.write_bytes(build_graph(model, mean).SerializeToString(deterministic=True))
    return path


if __name__ == "__main__":
    files = model_files(*sys.argv[1:2] or [""])
    mean = mean_of_histories(files.path) if sys.argv[1:2] else None
    print(f"{write_graph(files.path, files.digest, mean)} written")  # noqa: T201  # the answer
