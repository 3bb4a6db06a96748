"""Checks that isolation between tenants holds: system checks, and a check at start."""
