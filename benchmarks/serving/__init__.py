"""Benchmarks of the production server: REST, streams, Slack and the admin."""
