"""What an erasure does in each store: tables, the record of who did what, the cache, files."""
