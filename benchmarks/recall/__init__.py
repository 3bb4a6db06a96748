"""Benchmarks of recall: quality, cost, and the fit of its gate."""
