"""Schemas of tenants: creating, migrating and protecting them."""
