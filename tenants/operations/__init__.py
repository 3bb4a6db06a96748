"""Migration operations: policies, grants, concurrent indexes, comments."""
