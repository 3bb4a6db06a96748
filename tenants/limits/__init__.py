"""Rate limits: of tenants and channels, and of attempts to log in."""
