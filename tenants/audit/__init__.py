"""Roles of a tenant's people, and the logs of their actions."""
