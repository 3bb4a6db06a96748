"""Tenants: a schema each, with row-level security and database roles that enforce it."""
