"""Deliveries: the queue of messages to show in channels, and the worker that shows them."""
