"""Isolation of tables in a tenant's schema that Django or a library defines."""
