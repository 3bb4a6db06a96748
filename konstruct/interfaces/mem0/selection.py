"""From mem0's filters to a query of facts."""

import operator
from collections.abc import Mapping
from functools import reduce
from typing import Any, Final, cast
from uuid import UUID

from django.db.models import Q

from konstruct.api.auth.caller import Caller
from konstruct.interfaces.mem0.filters import (
    ENTITIES,
    EVERYTHING,
    IN_METADATA,
    WILDCARD,
    Demand,
    Filter,
    demands,
    names_an_entity,
    the_one,
)
from konstruct.orchestrator.agents import find_agents
from memory.exceptions import InvalidArgument
from memory.models import MemoryAttribute, MemoryEntry
from memory.models.attributes import attributes_that_fulfil
from memory.models.fact_filters import parse_filters
from memory.models.fact_querysets import MemoryEntryQuerySet
from tenants.context import required_tenant_id

Agents = Mapping[str, UUID]

_COLUMNS: Final = {
    "created_at": "created_at",
    "updated_at": "updated_at",
    # When it was said, or has been so, apart from when it was stored.
    "timestamp": "valid_from",
    "keywords": "content",
    "memory_ids": "memory_id",
    "user_id": "user_id",
    "agent_id": "agent_id",
}
NOBODYS = (
    "Say whose memories are meant: name user_id, agent_id, app_id or run_id in filters, such as"
    ' {"user_id": "alex"}, or {"user_id": "*"} for all users.'
)


def memories_of(
    caller: Caller, wanted: Filter = EVERYTHING, *, expired: bool = False
) -> MemoryEntryQuerySet:
    """The caller's memories that a filter finds, as a lazy query inside the tenant.

    A key that is bound to an agent or a user finds what belongs to them, and nothing that belongs
    to all. `expired`: those whose time is over or has not come, too.
    """
    facts = MemoryEntry.objects.of_tenant(required_tenant_id())
    standing = facts.entries() if expired else facts.as_of()
    named = {
        value
        for demand in demands(wanted)
        if demand.field == "agent_id"
        for value in demand.values
        if value is not None
    }
    agents = {name: agent.id for name, agent in find_agents(named).items()} if named else {}
    user_id, agent = the_one(wanted, "user_id"), the_one(wanted, "agent_id")
    # For the access log: whom it is about.
    if user_id is not None:
        caller.named["user_id"] = user_id
    if agent in agents and caller.agent_id in (None, agents[agent]):
        caller.named["agent_id"] = agents[agent]
    found = caller.rows(standing.filter(condition(wanted, agents)))
    return cast(MemoryEntryQuerySet, found)


def named_in(wanted: Filter) -> dict[str, list[str]]:
    """Whom a filter names, by entity, for the access log: there erasures look for names of users.

    Filters as they were sent would hide them under operators.
    """
    named: dict[str, list[str]] = {}
    for demand in demands(wanted):
        if demand.field in ENTITIES:
            values = [WILDCARD] if demand.operator == "any" else demand.values
            named.setdefault(demand.field, []).extend(each for each in values if each is not None)
    return named


def require_an_entity(caller: Caller, wanted: Filter) -> None:
    """Refuse a read of everybody's memories that does not say so; a bound key reads its own.

    Raises:
        InvalidArgument: no user, agent, app or run is named.
    """
    if not caller.is_bound and not names_an_entity(wanted):
        raise InvalidArgument(NOBODYS)


def condition(tree: Filter, agents: Agents) -> Q:
    """What a fact must fulfil. `agents`: ids of the agents that the filter names, by name."""
    if isinstance(tree, Demand):
        return _of_demand(tree, agents)
    parts = [condition(part, agents) for part in tree.parts]
    if not parts:
        return Q()
    joined = reduce(operator.and_ if tree.kind == "AND" else operator.or_, parts)
    return ~joined if tree.kind == "NOT" else joined


def _of_demand(demand: Demand, agents: Agents) -> Q:
    if demand.operator == "ne":
        # Of what has no such value, too.
        return ~_of_demand(Demand(demand.field, "eq", demand.values), agents)
    field = demand.field
    if field in IN_METADATA or field == "categories" or field.startswith("metadata."):
        return _of_metadata(demand)
    column = _COLUMNS[field]
    if demand.operator == "any":
        return Q(**{f"{column}__isnull": False})
    if field in ENTITIES and demand.values == (None,):
        return Q(**{f"{column}__isnull": True})
    values: tuple[Any, ...] = demand.values
    if field == "agent_id":
        values = tuple(agents[name] for name in values if name in agents)
    if demand.operator in ("eq", "in"):
        return Q(**{f"{column}__in": values})
    (value,) = values
    return Q(**{f"{column}__{demand.operator}": value})


def _of_metadata(demand: Demand) -> Q:
    path = demand.field.removeprefix("metadata.")
    (there,) = parse_filters({path: {"exists": True}})
    if demand.operator == "any":
        return Q(memory_id__in=attributes_that_fulfil(there, MemoryAttribute).values("memory_id"))
    if demand.field in IN_METADATA and demand.values == (None,):
        return ~Q(memory_id__in=attributes_that_fulfil(there, MemoryAttribute).values("memory_id"))
    if demand.operator in ("contains", "icontains"):
        attributes = MemoryAttribute.objects.filter(
            key=there.key, kind="text", **{f"text__{demand.operator}": demand.values[0]}
        )
    else:
        (value, *_) = demand.values or (None,)
        wanted = (
            {"in": [*demand.values]}
            if demand.operator in ("eq", "in")
            else {demand.operator: value}
        )
        (fulfilled,) = parse_filters({path: wanted})
        attributes = attributes_that_fulfil(fulfilled, MemoryAttribute)
    return Q(memory_id__in=attributes.values("memory_id"))
