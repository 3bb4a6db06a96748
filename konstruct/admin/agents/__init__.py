"""Pages of agents."""

from konstruct.admin.agents import agents

__all__ = ["agents"]
