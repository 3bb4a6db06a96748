"""Channels: each turns its requests into messages, and shows the replies.

Programs send requests to `rest`. Slack sends events to `slack`: the `inbox` stores them until a
worker has turned them into messages. Jobs of `delivery` show the replies.
"""
