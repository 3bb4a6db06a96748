"""Texts into vectors, by a model that each process loads when it first needs it."""

import gc
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from memory.conf import EMBED_BATCH_PADDING, EMBED_BATCH_TOKENS, EMBEDDING_DIMENSIONS
from memory.exceptions import EmbeddingModelError, InvalidArgument
from memory.model_files import ModelFiles, model_files
from tenants.context import asynchronous

Vectors = np.ndarray[Any, np.dtype[np.float32]]

_CORES: Final = (
    len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
)


class Embedder:
    """A loaded sentence-transformers model. Safe to share between threads.

    Every batch is computed by one thread, and there are as many at once as there are cores. To
    divide one batch among threads makes each wait for the slowest after every layer: it is no
    quicker on idle cores, many times slower on busy ones, and threads of torch survive no fork.
    """

    def __init__(self, files: ModelFiles) -> None:
        import_libraries()
        import torch
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
        self._prompt = self._model.prompts.get(self._model.default_prompt_name or "")
        torch.set_num_threads(1)
        self.start_threads()

    def start_threads(self) -> None:
        """Have a lock and threads of this process' own: those of a parent do not survive a fork."""
        self._tokenizing = threading.Lock()  # tokenizers are not thread-safe
        self._threads = ThreadPoolExecutor(_CORES, thread_name_prefix="embedder")

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, one row for each text, shape (len(texts), 384).

        Any number of texts: equal ones are embedded once, and batches hold texts of like length.
        What lies after the model's 256 word pieces is not read.
        """
        vectors = np.empty((len(texts), EMBEDDING_DIMENSIONS), dtype=np.float32)
        for positions, found in self.encode_batches(texts):
            vectors[positions] = found
        return vectors

    def encode_batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Vectors]]:
        """The same batch by batch: while the caller has the first, the others are computed.

        Yields:
            Positions in `texts` and their vectors; each position once, in no order to rely on.
        """
        alike: dict[str, list[int]] = {}
        for position, text in enumerate(_checked(texts)):
            alike.setdefault(_clean(text), []).append(position)
        batches = self._batches(list(alike))
        waiting = [self._threads.submit(self._embed, batch) for batch in batches]
        try:
            for batch, future in zip(batches, waiting, strict=True):
                rows = [row for row, text in enumerate(batch) for _ in alike[text]]
                yield [n for text in batch for n in alike[text]], future.result()[rows]
        finally:
            for future in waiting:
                future.cancel()

    def _embed(self, batch: list[str]) -> Vectors:
        import torch

        with self._tokenizing:
            features = self._model.preprocess(batch, prompt=self._prompt)
        with torch.inference_mode():
            embeddings = self._model(features)["sentence_embedding"]
            vectors: Vectors = torch.nn.functional.normalize(embeddings, dim=1).numpy()
        return vectors

    def _batches(self, texts: Sequence[str]) -> list[list[str]]:
        """The texts by length, as many together as make `EMBED_BATCH_TOKENS`.

        What a batch pads its shorter texts with is computed for nothing, and so is a part of every
        batch however small it is: the padding may grow to what another batch would cost.
        """
        if len(texts) <= 1:
            return [[text] for text in texts]
        with self._tokenizing:
            pieces = self._model.tokenizer(
                list(texts), truncation=True, max_length=self.max_tokens, verbose=False
            )["input_ids"]
        lengths = [len(ids) for ids in pieces]
        batches: list[list[str]] = []
        tokens = 0
        for position in sorted(range(len(texts)), key=lengths.__getitem__):
            padded = lengths[position] * (len(batches[-1]) + 1) if batches else 0
            if (
                not batches
                or padded > EMBED_BATCH_TOKENS
                or padded - tokens - lengths[position] > EMBED_BATCH_PADDING
            ):
                batches.append([])
                tokens = 0
            batches[-1].append(texts[position])
            tokens += lengths[position]
        return batches

    @property
    def max_tokens(self) -> int:
        """How many word pieces of a text the model reads."""
        return int(self._model.max_seq_length or 0)

    def count_tokens(self, text: str) -> int:
        """Word pieces that the model would make of `text`, with the two marks around them."""
        with self._tokenizing:
            return len(self._model.tokenizer(_clean(text), verbose=False)["input_ids"])


def import_libraries() -> None:
    """Import what computes vectors: not done before it is needed, for most processes embed nothing.

    It takes 7 seconds, a fifth of which the garbage collector would spend on looking through what
    all stays (measured).
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        import sentence_transformers  # noqa: F401
    finally:
        if collecting:
            gc.enable()


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


def _checked(texts: Sequence[str]) -> Sequence[str]:
    """The texts, if they are a list of texts."""
    if isinstance(texts, str):
        raise InvalidArgument(f"texts={texts[:80]!r} is one text: give a list of texts")
    for text in texts:
        if not isinstance(text, str):
            raise InvalidArgument(f"{text!r} is not text, and cannot be embedded")
    return texts


def _clean(text: str) -> str:
    """The text without what the tokenizer refuses: halves of surrogate pairs."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _after_fork_in_child() -> None:
    """Let a forked process embed, whatever its parent had done: a lock may be held by a thread that
    does not exist here."""
    global _loading
    _loading = threading.Lock()
    if _embedder is not None:
        _embedder.start_threads()


os.register_at_fork(after_in_child=_after_fork_in_child)
