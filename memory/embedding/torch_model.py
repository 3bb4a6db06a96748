"""A sentence model with sentence-transformers and torch: for any model except the packaged one.

Imported only for such a model: both packages come from requirements/models.txt.
"""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from transformers.utils import logging

from memory.embedding.text_model import TokenizedText, Vectors, is_mostly_unknown


class TorchModel:
    """A sentence-transformers model.

    Torch is limited to one thread for each call: its own threads do not survive a fork.
    """

    def __init__(self, folder: Path) -> None:
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
        return is_mostly_unknown(text, whole["input_ids"], whole["offset_mapping"], unknown)

    def count_tokens(self, text: str) -> int:
        """Return the number of word pieces of the whole text, with the two marks around them."""
        with self._tokenizing:
            return len(self._model.tokenizer(text, verbose=False)["input_ids"])

    def embed(self, batch: Sequence[TokenizedText]) -> Vectors:
        """Return unit vectors of one batch, computed in this thread, shape (len(batch),
        dimensions).
        """
        with self._tokenizing:
            features = self._model.preprocess([text.text for text in batch], prompt="")
        with torch.inference_mode():
            embeddings = self._model(features)["sentence_embedding"]
            vectors: Vectors = torch.nn.functional.normalize(embeddings, dim=1).numpy()
        return vectors

    def renew_locks(self) -> None:
        """Replace the lock of the parent process: transformers' tokenizers are not thread-safe."""
        self._tokenizing = threading.Lock()
