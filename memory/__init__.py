"""What agents remember: the transcript, the short-term window, long-term memory and recall."""
