"""Servers that tests start on loopback: a language model's, Slack, Postgres servers, a pooler."""
