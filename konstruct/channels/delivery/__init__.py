"""Delivery: replies wait in an outbox until a channel shows them."""
