"""Moves a tenant to another database server: a copy while it is served, and a short pause."""
