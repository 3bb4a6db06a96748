"""Servers on loopback for tests: a language model, Slack, mail, Postgres, a pooler."""
