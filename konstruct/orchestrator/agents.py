"""Agents: making and finding them."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import IntegrityError
from django.db.models import Q

from konstruct.orchestrator.exceptions import (
    AgentContradictory,
    AgentInvalid,
    AgentNameTaken,
    AgentNotFound,
)
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.models.agents import UUID_TEXT
from memory.arguments import is_unicode
from tenants import transaction
from tenants.context import tenant_scope


def create_agent(*, tenant_id: UUID, name: str, **fields: Any) -> Agent:
    """Make an agent.

    Raises AgentInvalid, which names every field that cannot be like this, or a name that is taken.
    """
    with tenant_scope(tenant_id):
        agent = Agent(tenant_id=tenant_id, name=name, **fields)
        _save(agent, force_insert=True)
    return agent


def update_agent(agent: Agent, **fields: Any) -> Agent:
    """Change an agent of the tenant that we are in. A recall preset clears its own thresholds.

    Raises AgentInvalid as `create_agent` does.
    """
    if "recall_preset" in fields:
        fields = {"recall_open_at": None, "recall_keep_at": None, **fields}
    for name, value in fields.items():
        setattr(agent, name, value)
    if fields:
        _save(agent, update_fields=list(fields))
    return agent


def _save(agent: Agent, **options: Any) -> None:
    try:
        agent.full_clean()
        with transaction.atomic():
            agent.save(**options)
    except ValidationError as error:
        if "\0" not in agent.name:  # which Postgres could not be asked for
            _refuse_taken_name(agent, error)
        together = error.message_dict.keys() == {NON_FIELD_ERRORS}
        kind = AgentContradictory if together else AgentInvalid
        raise kind.because(error.message_dict) from error
    except IntegrityError as error:  # it was free a moment ago
        _refuse_taken_name(agent, error)
        raise


def _refuse_taken_name(agent: Agent, error: Exception) -> None:
    if Agent.objects.filter(name=agent.name).exclude(pk=agent.pk).exists():
        raise AgentNameTaken(
            f"This tenant has an agent of that name already: {agent.name!r}."
        ) from error


def find_agent(name_or_id: str, *, active: bool = False) -> Agent:
    """Return the agent of that name or id in the tenant that we are in.

    Raises AgentNotFound, also for an inactive one if an active one is needed.
    """
    agents = Agent.objects.active() if active else Agent.objects.all()
    storable = is_unicode(name_or_id) and "\0" not in name_or_id
    agent = agents.named(name_or_id).first() if storable else None
    if agent is None:
        wanted = "active agent" if active else "agent"
        raise AgentNotFound(
            f"No {wanted} has the name or id {name_or_id!r}. Agents are made in the tenant's admin "
            "or with manage.py create_agent."
        )
    return agent


def find_agents(names_or_ids: Iterable[str]) -> dict[str, Agent]:
    """Return the agents of these names or ids in the tenant that we are in, by name or id as given.

    In one query; what no agent has is left out.
    """
    wanted = {each: UUID(each) if UUID_TEXT.fullmatch(each) else each for each in names_or_ids}
    found: dict[UUID | str, Agent] = {}
    for agent in Agent.objects.filter(
        Q(name__in=[each for each in wanted.values() if isinstance(each, str)])
        | Q(pk__in=[each for each in wanted.values() if isinstance(each, UUID)])
    ):
        found[agent.pk] = found[agent.name] = agent
    return {given: found[each] for given, each in wanted.items() if each in found}
