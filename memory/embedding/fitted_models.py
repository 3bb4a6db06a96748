"""The constants of recall that are fitted to an embedding model."""

import tomllib
from pathlib import Path
from typing import Any, Final

from memory.embedding.model_files import ModelFiles
from memory.exceptions import EmbeddingModelError

# The file of the same form in the folder of another model.
FILE: Final = "recall.toml"
_FITTED: Final = tomllib.loads(Path(__file__).with_name("fitted_models.toml").read_text())


def fitted_model(files: ModelFiles) -> dict[str, Any]:
    """Return what fitted_models.toml, or the model's own file, has for a model.

    Raises:
        EmbeddingModelError: neither has it: another model's gate would let in anything or nothing.
    """
    path = files.path / FILE
    fitted = tomllib.loads(path.read_text()) if path.is_file() else _FITTED.get(files.digest)
    if fitted is None:
        known = ", ".join(f"{model['name']}@{digest}" for digest, model in _FITTED.items())
        raise EmbeddingModelError(
            f"recall is not fitted to the embedding model {files.version}: use one of {known}, or"
            f" write {path} as docs/recall.md says (Another embedding model)"
        )
    return fitted
