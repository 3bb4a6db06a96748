"""Handoff: whether a thread's agent, another agent or a person answers, and how that changes."""
