"""Benchmark scripts. They measure the figures of docs/measurements.md and docs/decisions."""
