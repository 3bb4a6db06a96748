"""Pages of agents."""

from konstruct.admin.agents import agents, dry_runs, questions, versions

__all__ = ["agents", "dry_runs", "questions", "versions"]
