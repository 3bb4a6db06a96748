"""Indexing: a message's vectors and words, written by a worker from an outbox."""
