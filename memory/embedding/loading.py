"""Which runtime serves a model: ONNX Runtime where its graph is here, torch for any other."""

from pathlib import Path
from typing import Final

from memory.embedding.model_files import ModelFiles
from memory.embedding.text_model import TextModel
from memory.exceptions import EmbeddingModelError

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
