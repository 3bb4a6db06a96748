"""Benchmarks of a whole deployment: image size, memory, backup, upgrade and failures."""
