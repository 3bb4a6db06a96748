"""Roles and the logs: who may do what with a tenant's memory, and who did what."""
