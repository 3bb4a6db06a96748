"""Embedding and indexing: how many messages a second, and how many bytes."""
