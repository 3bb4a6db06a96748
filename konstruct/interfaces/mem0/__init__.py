"""mem0's REST below /mem0/, for its unmodified clients: its memories are our facts."""
