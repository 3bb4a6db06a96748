"""Benchmarks of many tenants: creating, migrating, moving and erasing them, and fairness."""
