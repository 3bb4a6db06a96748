"""Measurements, each a script: the figures of docs/measurements.md and of the decisions."""
