"""Ways in: each channel authenticates, normalises to a message, and accepts it."""
