"""The operators' log: each change with its author."""
