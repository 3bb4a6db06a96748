"""Agents: making and finding them."""

from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError

from konstruct.orchestrator.exceptions import AgentInvalid, AgentNotFound
from konstruct.orchestrator.models import Agent
from tenants.context import tenant_scope


def create_agent(*, tenant_id: UUID, name: str, **fields: Any) -> Agent:
    """Make an agent.

    Raises AgentInvalid, which names every field that cannot be like this, or a name that is taken.
    """
    with tenant_scope(tenant_id):
        agent = Agent(tenant_id=tenant_id, name=name, **fields)
        try:
            agent.full_clean()
        except ValidationError as error:
            problems = (
                f"{field}: {' '.join(messages)}" for field, messages in error.message_dict.items()
            )
            raise AgentInvalid("; ".join(problems).replace("__all__: ", "")) from error
        agent.save(force_insert=True)
    return agent


def find_agent(name_or_id: str, *, active: bool = False) -> Agent:
    """Return the agent of that name or id in the tenant that we are in.

    Raises AgentNotFound, also for an inactive one if an active one is needed.
    """
    agents = Agent.objects.active() if active else Agent.objects.all()
    agent = agents.named(name_or_id).first()
    if agent is None:
        wanted = "active agent" if active else "agent"
        raise AgentNotFound(
            f"No {wanted} has the name or id {name_or_id!r}. Agents are made in the tenant's admin "
            "or with manage.py create_agent."
        )
    return agent
