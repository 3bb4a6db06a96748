"""The names of agents for a page of rows, in one query."""

from collections.abc import Iterable
from uuid import UUID

from konstruct.orchestrator.models import Agent


def agent_names(agent_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the names of these agents."""
    return dict(Agent.objects.filter(pk__in=set(agent_ids)).values_list("pk", "name"))
