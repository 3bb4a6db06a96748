"""Channels: each makes messages of what it receives, and shows their replies.

`rest` is asked by programs and answers them. `slack` is told by Slack: its events stand in `inbox`
until a worker has made messages of them. Replies stand in an outbox until `delivery` shows them.
"""
