"""Migration operations: policies and grants, indexes built beside the traffic, comments."""
