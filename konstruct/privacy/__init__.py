"""Erasure, archives, merging of histories and retention: what happens to a person's data."""
