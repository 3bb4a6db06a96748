"""Backs tenants up, and restores them so that what was erased since does not come back."""
