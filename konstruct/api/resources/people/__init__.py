"""People: end users, their linked ids, and their erasure."""
