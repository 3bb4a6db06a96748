"""Facts that come out of conversations: what is accepted, what it costs, and what is left of it."""
