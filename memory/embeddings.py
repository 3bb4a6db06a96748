"""Texts into vectors, by a model that each process loads when it first needs it."""

import logging
import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from memory.conf import (
    EMBED_AT_ONCE,
    EMBED_BATCH_SPREAD,
    EMBED_BATCH_TOKENS,
    EMBEDDING_DIMENSIONS,
)
from memory.exceptions import EmbeddingModelError, InvalidArgument
from memory.model_files import ModelFiles, model_files
from tenants.context import asynchronous

logger = logging.getLogger(__name__)

# Read by torch's threads when it is imported: by default a thread that has nothing to do spins, and
# where the cores have other work too the others wait for it (16 messages/s instead of 112, measured
# on 2 busy cores).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


class Embedder:
    """A loaded sentence-transformers model. Safe to share between threads."""

    def __init__(self, files: ModelFiles) -> None:
        # Imported here: they take seconds, and most processes embed nothing.
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()
        self.version = files.version
        try:
            self._model = SentenceTransformer(
                str(files.path), device="cpu", local_files_only=True
            ).eval()
        except Exception as error:
            raise EmbeddingModelError(
                f"the embedding model in {files.path} cannot be loaded: {error}"
            ) from error
        dimensions = self._model.get_embedding_dimension()
        if dimensions != EMBEDDING_DIMENSIONS:
            raise EmbeddingModelError(
                f"the embedding model in {files.path} has {dimensions} dimensions; the tables hold"
                f" {EMBEDDING_DIMENSIONS}"
            )
        # The tokenizer is not thread-safe, and the cores are busy with one call already.
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Unit vectors, one row for each text, shape (len(texts), 384).

        Any number of texts: equal ones are embedded once, and batches hold texts of like length.
        What lies after the model's 256 word pieces is not read.
        """
        if isinstance(texts, str):
            raise InvalidArgument(f"texts={texts[:80]!r} is one text: give a list of texts")
        for text in texts:
            if not isinstance(text, str):
                raise InvalidArgument(f"{text!r} is not text, and cannot be embedded")
        if not texts:
            return np.empty((0, EMBEDDING_DIMENSIONS), dtype=np.float32)
        unique: dict[str, int] = {}
        positions = [unique.setdefault(_clean(text), len(unique)) for text in texts]
        different = list(unique)
        vectors = np.empty((len(different), EMBEDDING_DIMENSIONS), dtype=np.float32)
        with self._lock:
            for batch in self._batches(different):
                vectors[batch] = self._model.encode(
                    [different[position] for position in batch],
                    batch_size=len(batch),
                    normalize_embeddings=True,
                    show_progress_bar=False,
                )
        return vectors[positions]

    def _batches(self, texts: Sequence[str]) -> list[list[int]]:
        """Positions of texts of like length, as many as make `EMBED_BATCH_TOKENS`.

        What a batch pads its shorter texts with is computed for nothing: 350 sentences take 0.7 of
        the time that batches of 64 neighbours by characters take.
        """
        if len(texts) <= EMBED_AT_ONCE:
            return [list(range(len(texts)))]
        pieces = self._model.tokenizer(
            texts, truncation=True, max_length=self.max_tokens, verbose=False
        )["input_ids"]
        lengths = [len(ids) for ids in pieces]
        batches: list[list[int]] = []
        shortest = 0
        for position in sorted(range(len(texts)), key=lengths.__getitem__):
            length = lengths[position]
            if (
                not batches
                or length - shortest > EMBED_BATCH_SPREAD
                or length * (len(batches[-1]) + 1) > EMBED_BATCH_TOKENS
            ):
                batches.append([])
                shortest = length
            batches[-1].append(position)
        return batches

    @property
    def max_tokens(self) -> int:
        """How many word pieces of a text the model reads."""
        return int(self._model.max_seq_length or 0)

    def count_tokens(self, text: str) -> int:
        """Word pieces that the model would make of `text`, with the two marks around them."""
        with self._lock:
            return len(self._model.tokenizer(_clean(text), verbose=False)["input_ids"])


_embedder: Embedder | None = None
_loading = threading.Lock()


def get_embedder() -> Embedder:
    """This process' embedder, loaded now if it was not needed before.

    Raises:
        EmbeddingModelError: the model cannot be found or loaded, or is not of 384 dimensions.
    """
    global _embedder
    if _embedder is None:
        with _loading:
            if _embedder is None:
                _embedder = Embedder(model_files())
    return _embedder


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Unit vectors of 384 dimensions, one for each text."""
    vectors: list[list[float]] = get_embedder().encode(texts).tolist()
    return vectors


aembed = asynchronous(embed)


def model_version() -> str:
    """Name of the model and digest of its weights; known without loading the model."""
    return model_files().version


def _clean(text: str) -> str:
    """The text without what the tokenizer refuses: halves of surrogate pairs."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _after_fork_in_child() -> None:
    """Let a forked process embed, whatever its parent had done.

    A lock may be held by a thread that does not exist here. And torch's threads were not copied:
    with more than one it would wait for them for ever, so a child of a process that had loaded the
    model embeds on one core. Processes that fork workers should not load it (ours do not).
    """
    global _loading
    _loading = threading.Lock()
    if _embedder is not None:
        import torch

        torch.set_num_threads(1)
        _embedder._lock = threading.Lock()
        logger.warning("forked after the embedding model was loaded: embedding on one core")


os.register_at_fork(after_in_child=_after_fork_in_child)
