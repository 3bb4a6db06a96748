"""Pages of agents."""

from konstruct.admin.agents import agents, dry_runs

__all__ = ["agents", "dry_runs"]
