"""Servers that tests start on loopback: a language model, Slack, mail, Postgres, a pooler."""
