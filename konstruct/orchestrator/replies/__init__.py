"""Replies: their queue, their status, waiting for them, and hooks of channels."""
