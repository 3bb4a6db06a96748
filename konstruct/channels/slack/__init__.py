"""The Slack channel: from a signed request to a message, and from a reply to a post."""
