"""URL configurations: of tenants' hosts, of the public hosts, and what both have."""
