"""Locks in Postgres: of migrations for a session, of a tenant's work for a transaction."""
