"""Roles and the access log: who may do what with a tenant's memory, and who did what."""
