"""Public names for vectors of texts; the implementation is `memory.embedding.embedder`."""

from memory.embedding.embedder import embed, model_version
from tenants.context import asynchronous

__all__ = ["aembed", "embed", "model_version"]

aembed = asynchronous(embed)
