"""Operators' guarantees: ledger, erasure, proof of isolation, archives.

The highest layer, which knows every store.
"""
