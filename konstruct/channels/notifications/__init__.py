"""Notifications of the team, by mail and in Slack: checks for events, texts, and sending."""
