"""The REST channel: programs send messages, wait for replies, import history."""
