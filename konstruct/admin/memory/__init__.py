"""Pages of agents' memory: conversations, facts, windows and recalls."""
