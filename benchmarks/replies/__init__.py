"""Benchmarks of replies: from an accepted message to its reply, without the language model."""
