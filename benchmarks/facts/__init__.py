"""Benchmarks of fact extraction: accepted facts, costs, and data left after an erasure."""
