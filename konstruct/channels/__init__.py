"""Channels: each makes messages of what it receives, and shows their replies.

Programs send requests to `rest`. Slack sends events to `slack`: the `inbox` stores them until a
worker has made messages of them. An outbox stores replies until `delivery` has shown them.
"""
