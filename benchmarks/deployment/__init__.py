"""A whole deployment: its image, its memory, and what it survives."""
