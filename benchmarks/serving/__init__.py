"""What callers wait for: REST, streams, Slack and the admin, by the production server."""
