"""Pages of what agents remember: conversations, facts, windows, and reasons."""
