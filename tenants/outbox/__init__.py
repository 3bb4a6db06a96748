"""The outbox: events that programs read or receive by webhooks."""
