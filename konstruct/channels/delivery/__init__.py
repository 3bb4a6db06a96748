"""Deliveries: the queue of messages that a channel is to show, and the worker that shows them."""
