"""Shared parts of endpoints: problem documents, pages, ETags, idempotency, schema, access log."""
