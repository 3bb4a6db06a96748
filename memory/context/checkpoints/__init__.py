"""LangGraph's checkpoints in a tenant's schema: saver, connections, serializer, pruning."""
