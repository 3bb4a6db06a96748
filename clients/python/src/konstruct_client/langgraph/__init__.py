"""LangGraph: a store whose items are facts, and a checkpointer. Needs the extra `langgraph`."""

from konstruct_client._extras import extra

with extra("langgraph"):
    from konstruct_client.langgraph.saver import KonstructSaver
    from konstruct_client.langgraph.store import KonstructStore

__all__ = ["KonstructSaver", "KonstructStore"]
