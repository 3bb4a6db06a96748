"""Database backend that keeps schema and row-level security setting together."""
