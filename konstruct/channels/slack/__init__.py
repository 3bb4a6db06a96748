"""The Slack channel: signed requests become messages, and replies become posts."""
