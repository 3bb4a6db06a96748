"""Sentence models by runtime: ONNX Runtime, or sentence-transformers with torch.

A runtime is imported when a model is loaded: most processes embed nothing. The packages of the
second come from requirements/models.txt.
"""

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from memory.embedding.model_files import ModelFiles
from memory.exceptions import EmbeddingModelError

Vectors = np.ndarray[Any, np.dtype[np.float32]]

ERRORS_ONLY: Final = 3
# Graphs of models by the digest of their weights, from tests/memory/embedding/bert_graph.py.
GRAPHS: Final = Path(__file__).parent / "graphs"


class TokenizedText(NamedTuple):
    """A text with the ids of the word pieces that the model reads, including the two marks."""

    text: str
    ids: list[int]
    is_unknown: bool = False
    """Whether at least half of its characters are in no word piece, such as those of Amharic in an
    English model."""


def _is_mostly_unknown(
    text: str, ids: Sequence[int], offsets: Sequence[tuple[int, int]], unknown: int | None
) -> bool:
    """Return whether at least half of the characters of a text are in unknown pieces.

    Args:
        text: the text.
        ids: its word pieces.
        offsets: the first character of each piece, and the one after its last.
        unknown: the id of an unknown piece.
    """
    if unknown not in ids:
        return False
    spans = zip(ids, offsets, strict=True)
    return 2 * sum(end - start for piece, (start, end) in spans if piece == unknown) >= len(text)


class OnnxModel:
    """A graph of bert_graph.py with the weights of a sentence-transformers folder.

    Every method may be called by many threads. The weights are mapped into memory from
    `model.safetensors`. A fork shares the loaded pages, and can embed: a session with one thread
    has no thread pool, and without an arena it has no lock on memory.
    """

    def __init__(self, folder: Path, graph: Path) -> None:
        # Read at import. Otherwise versions from 1.29 on store an id of this machine under HOME,
        # and send it to Microsoft with events about models and errors.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # would keep the memory of the largest batch
        options.log_severity_level = ERRORS_ONLY
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(folder.resolve())
        )
        self._session = onnxruntime.InferenceSession(
            graph.read_bytes(), options, providers=["CPUExecutionProvider"]
        )
        self.dimensions: int = self._session.get_outputs()[0].shape[1]
        limits = json.loads((folder / "sentence_bert_config.json").read_text())
        self.max_tokens: int = limits["max_seq_length"]
        """How many word pieces of a text the model reads, with the two marks around them."""
        prompts = json.loads((folder / "config_sentence_transformers.json").read_text())
        self.prompts: Mapping[str, str] = {
            "query": "",
            "document": "",
            **prompts.get("prompts", {}),
        }
        """The beginning of a "query" and of a "document" that the model was trained with, or "" """
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()  # tokenize() cuts, count_tokens() counts the whole text
        self._tokenizer.no_padding()
        # The names of an unknown piece in BERT's and in SentencePiece's vocabularies.
        marks = map(self._tokenizer.token_to_id, ("[UNK]", "<unk>"))
        self._unknown = next((mark for mark in marks if mark is not None), None)

    def tokenize(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Return the texts with their word pieces, cut at `max_tokens`, with the end mark."""
        tokenized = []
        for text in texts:
            # Not encode_batch(), whose threads do not survive a fork.
            pieces = self._tokenizer.encode(text)
            ids = pieces.ids
            is_unknown = _is_mostly_unknown(text, ids, pieces.offsets, self._unknown)
            if len(ids) > self.max_tokens:
                ids = [*ids[: self.max_tokens - 1], ids[-1]]
            tokenized.append(TokenizedText(text, ids, is_unknown))
        return tokenized

    def count_tokens(self, text: str) -> int:
        """Return the number of word pieces of the whole text, with the two marks around them."""
        return len(self._tokenizer.encode(text).ids)

    def embed(self, batch: Sequence[TokenizedText]) -> Vectors:
        """Return unit vectors of one batch, computed in this thread, shape (len(batch),
        dimensions).
        """
        lengths = [len(text.ids) for text in batch]
        ids = np.zeros((len(batch), max(lengths)), dtype=np.int64)
        for row, text in zip(ids, batch, strict=True):
            row[: len(text.ids)] = text.ids
        mask = (np.arange(ids.shape[1]) < np.array(lengths)[:, None]).astype(np.int64)
        vectors: Vectors
        (vectors,) = self._session.run(["vectors"], {"input_ids": ids, "attention_mask": mask})
        return vectors

    def renew_locks(self) -> None:
        """This model has no locks."""


class TorchModel:
    """A sentence-transformers model. Every method may be called by many threads.

    Torch is limited to one thread for each call: its own threads do not survive a fork.
    """

    def __init__(self, folder: Path) -> None:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()
        self._model = SentenceTransformer(str(folder), device="cpu", local_files_only=True).eval()
        self.dimensions: int = self._model.get_embedding_dimension() or 0
        self.max_tokens: int = self._model.max_seq_length or 0
        prompts = self._model.prompts
        default = prompts.get(self._model.default_prompt_name or "", "")
        self.prompts: Mapping[str, str] = {
            kind: prompts.get(kind) or default for kind in ("query", "document")
        }
        torch.set_num_threads(1)
        self.renew_locks()

    def tokenize(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Return the texts with their word pieces, cut at `max_tokens`."""
        with self._tokenizing:
            pieces = self._model.tokenizer(
                list(texts), truncation=True, max_length=self.max_tokens, verbose=False
            )["input_ids"]
            return [
                TokenizedText(text, ids, self._is_unknown(text, ids))
                for text, ids in zip(texts, pieces, strict=True)
            ]

    def _is_unknown(self, text: str, ids: Sequence[int]) -> bool:
        unknown = self._model.tokenizer.unk_token_id
        if unknown not in ids and len(ids) < self.max_tokens:
            return False
        whole = self._model.tokenizer(text, return_offsets_mapping=True, verbose=False)
        return _is_mostly_unknown(text, whole["input_ids"], whole["offset_mapping"], unknown)

    def count_tokens(self, text: str) -> int:
        """Return the number of word pieces of the whole text, with the two marks around them."""
        with self._tokenizing:
            return len(self._model.tokenizer(text, verbose=False)["input_ids"])

    def embed(self, batch: Sequence[TokenizedText]) -> Vectors:
        """Return unit vectors of one batch, computed in this thread, shape (len(batch),
        dimensions).
        """
        import torch

        with self._tokenizing:
            features = self._model.preprocess([text.text for text in batch], prompt="")
        with torch.inference_mode():
            embeddings = self._model(features)["sentence_embedding"]
            vectors: Vectors = torch.nn.functional.normalize(embeddings, dim=1).numpy()
        return vectors

    def renew_locks(self) -> None:
        """Replace the lock of the parent process: transformers' tokenizers are not thread-safe."""
        self._tokenizing = threading.Lock()


def needs_torch(files: ModelFiles) -> bool:
    """Return whether torch serves the model: there is no graph of it, or its weights are a link.

    ONNX Runtime reads no weights outside of the folder, and those of the hub's cache are links.
    """
    weights = files.path / "model.safetensors"
    return not _graph(files).is_file() or weights.resolve().parent != files.path.resolve()


def load_model(files: ModelFiles) -> OnnxModel | TorchModel:
    """Load the model.

    Raises:
        EmbeddingModelError: the model cannot be loaded, or a package that it needs is not
        installed.
    """
    try:
        if needs_torch(files):
            return TorchModel(files.path)
        return OnnxModel(files.path, _graph(files))
    except ModuleNotFoundError as error:
        raise EmbeddingModelError(
            f"the embedding model {files.version} needs {error.name}, which is not installed:"
            f" install requirements/{'models' if needs_torch(files) else 'base'}.txt; or its files"
            f" in {files.path} are damaged"
        ) from error
    except Exception as error:
        raise EmbeddingModelError(
            f"the embedding model in {files.path} cannot be loaded: {error}"
        ) from error


def _graph(files: ModelFiles) -> Path:
    return GRAPHS / f"{files.digest}.onnx"
