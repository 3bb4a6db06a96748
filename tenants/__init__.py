"""Tenants: a schema each, row-level security, and roles that cannot go around either."""
