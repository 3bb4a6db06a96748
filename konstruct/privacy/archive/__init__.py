"""Exports a tenant's memory, or one person's, into one file, and imports it."""
