"""The short-term window under its public name; the work is in `memory.conversations.short_term`."""

from memory.conversations.short_term import append_message, clear_window, get_recent_messages

__all__ = ["append_message", "clear_window", "get_recent_messages"]
