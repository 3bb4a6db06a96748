"""Conversations: the transcript of every turn, and the short-term windows made from it."""
