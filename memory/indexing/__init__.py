"""Indexing: a worker writes the vectors and words of messages, from the queue of embeddings."""
