"""Notifications of the team, by mail and in Slack: noticing, wording and sending them."""
