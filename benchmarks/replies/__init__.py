"""From an accepted message to its reply, without the time of the language model."""
