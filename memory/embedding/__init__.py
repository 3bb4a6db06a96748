"""Vectors: embedding texts, storing vectors, searching the HNSW index."""
