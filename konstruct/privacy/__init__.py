"""Erasure, archives, merging of histories and retention of personal data."""
