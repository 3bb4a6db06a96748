"""Escalations, tool calls and usage."""
