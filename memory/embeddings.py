"""Vectors of texts under their public name; the work is in `memory.embedding.embedder`."""

from memory.embedding.embedder import embed, model_version
from tenants.context import asynchronous

__all__ = ["aembed", "embed", "model_version"]

aembed = asynchronous(embed)
