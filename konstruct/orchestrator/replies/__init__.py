"""The outbox of replies: what waits, what is held, and what is told of each change."""
