"""URL configurations of tenants' hosts and public hosts, and their common part."""
