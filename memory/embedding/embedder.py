"""Embeds texts, with a model that each process loads once: at its start, or at first use."""

import gc
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from itertools import chain
from typing import Final

import numpy as np

from memory.conf import EMBED_BATCH_PADDING, EMBED_BATCH_TOKENS, EMBEDDING_DIMENSIONS
from memory.embedding.model_files import ModelFiles, fitted_model, model_files
from memory.embedding.runtimes import TokenizedText, Vectors, load_model, needs_torch
from memory.exceptions import EmbeddingModelError, InvalidArgument

logger = logging.getLogger(__name__)

_CORES: Final = (
    len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
)


class Embedder:
    """A loaded sentence model. It can be shared between threads, and with a fork.

    Each batch is computed by one thread, and as many batches run in parallel as there are cores.
    With several threads for one batch, each would wait for the slowest after every layer: not
    faster on idle cores, many times slower on busy ones, and such threads do not survive a fork.
    """

    def __init__(self, files: ModelFiles) -> None:
        self.version = files.version
        self._model = load_model(files)
        if self._model.dimensions != EMBEDDING_DIMENSIONS:
            raise EmbeddingModelError(
                f"the embedding model in {files.path} has {self._model.dimensions} dimensions; the"
                f" tables hold {EMBEDDING_DIMENSIONS}"
            )
        fitted_model(files)
        self.start_threads()
        # The first vector takes longer than the others. In this thread, since a fork may follow.
        self._model.embed(self._model.tokenize(["the first"]))

    def start_threads(self) -> None:
        """Create threads and locks of this process: those of a parent do not survive a fork."""
        self._model.renew_locks()
        self._threads = ThreadPoolExecutor(_CORES, thread_name_prefix="embedder")

    def encode(self, texts: Sequence[str], *, is_query: bool = False) -> Vectors:
        """Return unit vectors, one row for each text, shape (len(texts), 384).

        For any number of texts: equal ones are embedded once, and a batch has texts of similar
        length. Text after the model's 256 word pieces is ignored. A text of unknown word pieces has
        a vector of its letters: the model would see the same text in all of them.

        Args:
            texts: the texts.
            is_query: whether they look for others, from which some models distinguish them.
        """
        vectors = np.empty((len(texts), EMBEDDING_DIMENSIONS), dtype=np.float32)
        for positions, batch in self.encode_batches(texts, is_query=is_query):
            vectors[positions] = batch
        return vectors

    def encode_batches(
        self, texts: Sequence[str], *, is_query: bool = False
    ) -> Iterator[tuple[list[int], Vectors]]:
        """Yield the vectors in batches: the others are computed while the caller has the first.

        Yields:
            Positions in `texts` and their vectors; each position once, in any order.
        """
        prompt = self._model.prompts["query" if is_query else "document"]
        positions_of: dict[str, list[int]] = {}
        for position, text in enumerate(_check_texts(texts)):
            positions_of.setdefault(prompt + _clean(text), []).append(position)
        batches = _batches(self._model.tokenize(list(positions_of)))
        # A single one, such as a question, is computed in this thread.
        compute = map if len(batches) == 1 else self._threads.map
        for batch, vectors in zip(batches, compute(self._model.embed, batches), strict=True):
            positions = [positions_of[tokenized.text] for tokenized in batch]
            for row, tokenized in enumerate(batch):
                if tokenized.is_unknown:
                    vectors[row] = letters_vector(tokenized.text.removeprefix(prompt))
            rows = np.repeat(np.arange(len(batch)), [len(equal) for equal in positions])
            yield list(chain.from_iterable(positions)), vectors[rows]

    @property
    def max_tokens(self) -> int:
        """The number of word pieces of a text that the model reads."""
        return self._model.max_tokens

    def count_tokens(self, text: str) -> int:
        """Return the number of word pieces of `text`, with the two marks around them."""
        return self._model.count_tokens(self._model.prompts["document"] + _clean(text))


_embedder: Embedder | None = None
_load_lock = threading.Lock()


def get_embedder() -> Embedder:
    """Return this process' embedder, loaded now if it was not loaded before.

    Raises:
        EmbeddingModelError: the model cannot be found or loaded, or does not have 384 dimensions.
    """
    global _embedder
    if _embedder is None:
        with _load_lock:
            if _embedder is None:
                _embedder = Embedder(model_files())
    return _embedder


def load_in_background() -> None:
    """Start loading this process' embedder, unless it is loaded or being loaded.

    An error is logged, and the load is repeated when the embedder is needed.
    """
    if _embedder is None and not _load_lock.locked():
        threading.Thread(target=_load, name="load-embedder", daemon=True).start()


def load_before_fork() -> None:
    """Load the parts that forked children can share; nothing if that fails.

    With ONNX Runtime the embedder itself. With torch only the libraries: torch's threads of a
    parent do not run in its children, so each child loads the model.
    """
    # Imported modules stay: otherwise the garbage collector would traverse them again and again.
    collecting = gc.isenabled()
    gc.disable()
    try:
        if needs_torch(model_files()):
            import sentence_transformers  # noqa: F401  (takes seconds)
        else:
            get_embedder()
    except Exception:
        logger.exception("The embedding model could not be loaded")
    finally:
        if collecting:
            gc.enable()


def is_loaded() -> bool:
    """Return whether this process' embedder is loaded."""
    return _embedder is not None


def _load() -> None:
    try:
        get_embedder()
    except Exception:
        logger.exception("The embedding model could not be loaded")


def embed(texts: Sequence[str], *, is_query: bool = False) -> list[list[float]]:
    """Return unit vectors of 384 dimensions, one for each text; see `Embedder.encode`."""
    return get_embedder().encode(texts, is_query=is_query).tolist()


def letters_vector(text: str) -> Vectors:
    """Return a unit vector that is similar for texts with the same runs of one to three letters.

    The signs are those of a digest: vectors of other texts, and of the model, are at right angles.
    """
    letters = " ".join(text.casefold().split())
    runs = {letters[at : at + size] for size in (1, 2, 3) for at in range(len(letters) + 1 - size)}
    digests = [
        blake2b(run.encode(), digest_size=EMBEDDING_DIMENSIONS // 8).digest() for run in runs
    ]
    bits = np.unpackbits(np.frombuffer(b"".join(digests), np.uint8)).reshape(len(runs), -1)
    total = (2.0 * bits - 1).sum(axis=0, dtype=np.float32)
    return (total / np.linalg.norm(total)).astype(np.float32)


def model_version() -> str:
    """Return the model's name with a digest of its weights, without loading the model."""
    return model_files().version


def _check_texts(texts: Sequence[str]) -> Sequence[str]:
    """Return the texts; raise InvalidArgument if they are no list of texts."""
    if isinstance(texts, str):
        raise InvalidArgument(f"texts={texts[:80]!r} is one text: give a list of texts")
    for text in texts:
        if not isinstance(text, str):
            raise InvalidArgument(f"{text!r} is not text, and cannot be embedded")
    return texts


def _clean(text: str) -> str:
    """Return the text without lone surrogates, which the tokenizer refuses."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _batches(texts: Sequence[TokenizedText]) -> list[list[TokenizedText]]:
    """Return the texts by length, in batches of `EMBED_BATCH_TOKENS`.

    Padding of short texts is computed for nothing, and each batch has a fixed cost: the padding may
    grow to the cost of a further batch.
    """
    batches: list[list[TokenizedText]] = []
    tokens = 0
    for text in sorted(texts, key=lambda text: len(text.ids)):
        length = len(text.ids)
        padded = length * (len(batches[-1]) + 1) if batches else 0
        if (
            not batches
            or padded > EMBED_BATCH_TOKENS
            or padded - tokens - length > EMBED_BATCH_PADDING
        ):
            batches.append([])
            tokens = 0
        batches[-1].append(text)
        tokens += length
    return batches


def _after_fork_in_child() -> None:
    """Replace the lock: a thread of the parent, which does not run here, may hold it."""
    global _load_lock
    _load_lock = threading.Lock()
    if _embedder is not None:
        _embedder.start_threads()


os.register_at_fork(after_in_child=_after_fork_in_child)
