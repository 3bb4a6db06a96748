"""What all REST endpoints share: keys, authentication, problem documents, limits, pages, schema."""
