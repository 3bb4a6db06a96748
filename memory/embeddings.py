"""Vectors of texts under their public name; the work is in `memory.embedding.embedder`."""

from memory.embedding.embedder import embed, model_version

__all__ = ["embed", "model_version"]
