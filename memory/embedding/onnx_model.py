"""A sentence model with ONNX Runtime and `tokenizers`, for the packaged model."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

# Read at import. Otherwise versions from 1.29 on store an id of this machine under HOME, and send
# it to Microsoft with events about models and errors.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from memory.embedding.text_model import TokenizedText, Vectors, is_mostly_unknown

ERRORS_ONLY = 3


class OnnxModel:
    """A graph of bert_graph.py with the weights of a sentence-transformers folder.

    The weights are mapped into memory from `model.safetensors`. A fork shares the loaded pages, and
    can embed: a session with one thread has no thread pool, and without an arena it has no lock on
    memory.
    """

    def __init__(self, folder: Path, graph: Path) -> None:
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
        prompts = json.loads((folder / "config_sentence_transformers.json").read_text())
        self.prompts: Mapping[str, str] = {
            "query": "",
            "document": "",
            **prompts.get("prompts", {}),
        }
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()  # tokenize() cuts, count_tokens() counts the whole text
        self._tokenizer.no_padding()
        # The names of an unknown piece in BERT's and in SentencePiece's vocabularies.
        marks = map(self._tokenizer.token_to_id, ("[UNK]", "<unk>"))
        self._unknown = next((mark for mark in marks if mark is not None), None)

    def tokenize(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Return the texts with their word pieces, cut at `max_tokens`, with the end mark."""
        return [self._tokenized(text) for text in texts]

    def count_tokens(self, text: str) -> int:
        """Return the word pieces of the whole text, with the two marks around them."""
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

    def _tokenized(self, text: str) -> TokenizedText:
        # Not encode_batch(), whose threads do not survive a fork.
        pieces = self._tokenizer.encode(text)
        is_unknown = is_mostly_unknown(text, pieces.ids, pieces.offsets, self._unknown)
        return TokenizedText(text, self._truncate(pieces.ids), is_unknown)

    def _truncate(self, ids: list[int]) -> list[int]:
        return ids if len(ids) <= self.max_tokens else [*ids[: self.max_tokens - 1], ids[-1]]
