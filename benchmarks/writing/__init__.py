"""Benchmarks of embedding and indexing: messages a second, and bytes."""
