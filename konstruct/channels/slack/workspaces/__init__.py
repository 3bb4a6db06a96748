"""Workspaces of Slack: adding our app to them, their tokens, and leaving them."""
