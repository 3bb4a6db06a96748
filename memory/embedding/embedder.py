"""Texts into vectors, by a model that each process loads once: at its start, or at first use."""

import gc
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import numpy as np

from memory.conf import EMBED_BATCH_PADDING, EMBED_BATCH_TOKENS, EMBEDDING_DIMENSIONS
from memory.embedding.model_files import ModelFiles, model_files
from memory.embedding.text_model import TextModel, TokenizedText, Vectors
from memory.exceptions import EmbeddingModelError, InvalidArgument

logger = logging.getLogger(__name__)

_CORES: Final = (
    len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
)


class Embedder:
    """A loaded sentence model. Safe to share between threads, and with a fork.

    Every batch is computed by one thread, and there are as many at once as there are cores. To
    divide one batch among threads makes each wait for the slowest after every layer: it is no
    quicker on idle cores, many times slower on busy ones, and such threads survive no fork.
    """

    def __init__(self, files: ModelFiles) -> None:
        self.version = files.version
        self._model = load_model(files)
        if self._model.dimensions != EMBEDDING_DIMENSIONS:
            raise EmbeddingModelError(
                f"the embedding model in {files.path} has {self._model.dimensions} dimensions; the"
                f" tables hold {EMBEDDING_DIMENSIONS}"
            )
        self.start_threads()
        # The first vector takes longer than those that follow. No thread for it: a fork may follow.
        self._model.embed(self._model.tokenize(["the first"]))

    def start_threads(self) -> None:
        """Have threads and locks of this process' own: those of a parent do not survive a fork."""
        self._model.renew_locks()
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
        batches = _batches(self._model.tokenize(list(alike)))
        for batch, vectors in self._computed(batches):
            rows = [row for row, piece in enumerate(batch) for _ in alike[piece.text]]
            yield [n for piece in batch for n in alike[piece.text]], vectors[rows]

    def _computed(
        self, batches: list[list[TokenizedText]]
    ) -> Iterator[tuple[list[TokenizedText], Vectors]]:
        """Each batch with its vectors. A single one, such as a question, is computed right here."""
        if len(batches) == 1:
            yield batches[0], self._model.embed(batches[0])
            return
        waiting = [self._threads.submit(self._model.embed, batch) for batch in batches]
        try:
            for batch, future in zip(batches, waiting, strict=True):
                yield batch, future.result()
        finally:
            for future in waiting:
                future.cancel()

    @property
    def max_tokens(self) -> int:
        """How many word pieces of a text the model reads."""
        return self._model.max_tokens

    def count_tokens(self, text: str) -> int:
        """Word pieces that the model would make of `text`, with the two marks around them."""
        return self._model.count_tokens(_clean(text))


_embedder: Embedder | None = None
_loading = threading.Lock()
_loader: threading.Thread | None = None
_starting = threading.Lock()


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


def load_in_background() -> None:
    """Begin to load this process' embedder, unless it is loaded or being loaded.

    What fails is logged, and tried again when the embedder is needed.
    """
    global _loader
    with _starting:
        if _embedder is None and (_loader is None or not _loader.is_alive()):
            _loader = threading.Thread(target=_load, name="load-embedder", daemon=True)
            _loader.start()


def load_before_fork() -> None:
    """Load what the children of this process can share, or nothing where that fails.

    The embedder itself under ONNX Runtime. Of a model for torch the libraries alone: what torch has
    begun in a parent does not go on in its children, so that each loads the model itself.
    """
    # Imported modules stay: the garbage collector would traverse them again and again.
    collecting = gc.isenabled()
    gc.disable()
    try:
        if needs_torch(model_files()):
            import_torch()
        else:
            get_embedder()
    except Exception:
        logger.exception("The embedding model could not be loaded")
    finally:
        if collecting:
            gc.enable()


def is_loaded() -> bool:
    """Whether this process' embedder is loaded."""
    return _embedder is not None


def _load() -> None:
    try:
        get_embedder()
    except Exception:
        logger.exception("The embedding model could not be loaded")


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Unit vectors of 384 dimensions, one for each text."""
    vectors: list[list[float]] = get_embedder().encode(texts).tolist()
    return vectors


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


def _batches(texts: Sequence[TokenizedText]) -> list[list[TokenizedText]]:
    """The texts by length, as many together as make `EMBED_BATCH_TOKENS`.

    What a batch pads its shorter texts with is computed for nothing, and so is a part of every
    batch however small it is: the padding may grow to what another batch would cost.
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
    """Let a forked process embed, whatever its parent had done: a lock may be held by a thread that
    does not exist here."""
    global _loading, _starting, _loader
    _loading, _starting, _loader = threading.Lock(), threading.Lock(), None
    if _embedder is not None:
        _embedder.start_threads()


os.register_at_fork(after_in_child=_after_fork_in_child)


# Graphs of models by the digest of their weights, written by tests/memory/embedding/bert_graph.py.
GRAPHS: Final = Path(__file__).parent / "graphs"


def needs_torch(files: ModelFiles) -> bool:
    """Whether the model is served by torch: there is no graph of it here."""
    return not _graph(files).is_file()


def load_model(files: ModelFiles) -> TextModel:
    """Load the model.

    Raises:
        EmbeddingModelError: the model cannot be loaded, or what it needs is not installed.
    """
    try:
        # Imported when a model is needed: most processes embed nothing.
        if needs_torch(files):
            from memory.embedding.torch_model import TorchModel

            return TorchModel(files.path)
        from memory.embedding.onnx_model import OnnxModel

        return OnnxModel(files.path, _graph(files))
    except ModuleNotFoundError as error:
        raise EmbeddingModelError(
            f"the embedding model {files.version} needs {error.name}, which is not installed:"
            f" install requirements/{'models' if needs_torch(files) else 'base'}.txt"
        ) from error
    except Exception as error:
        raise EmbeddingModelError(
            f"the embedding model in {files.path} cannot be loaded: {error}"
        ) from error


def import_torch() -> None:
    """Import what a model for torch needs, which takes seconds."""
    import memory.embedding.torch_model  # noqa: F401


def _graph(files: ModelFiles) -> Path:
    return GRAPHS / f"{files.digest}.onnx"
