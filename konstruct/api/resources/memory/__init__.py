"""Conversations, facts, items, memories, recall events and sessions."""
