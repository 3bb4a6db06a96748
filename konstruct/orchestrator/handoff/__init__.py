"""Handoff: the decision whether a thread's agent, another agent or a person answers."""
