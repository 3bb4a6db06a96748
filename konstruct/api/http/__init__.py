"""What every endpoint shares: problem documents, pages, ETags, idempotency, schema, access log."""
