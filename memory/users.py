"""The end users whom memory knows, found by steps through indexes and not by reading all rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Count, Max, Min

from memory.models import MemoryEntry, Message
from tenants.context import required_tenant_id

# Each step finds the next user by two probes, of messages and of facts: a list of 50 users costs
# the same whether they said a thousand things or a million.
_KNOWN = """
WITH RECURSIVE known AS (
    SELECT {extreme}(user_id) AS user_id FROM ({first}) AS first
    UNION ALL
    SELECT (SELECT {extreme}(user_id) FROM ({following}) AS following)
    FROM known WHERE known.user_id IS NOT NULL
)
SELECT user_id FROM known WHERE user_id IS NOT NULL LIMIT %(limit)s
"""
_PROBE = """
(SELECT user_id FROM {table} WHERE tenant_id = %(tenant)s{conditions}
 ORDER BY user_id {order} LIMIT 1)
"""


@dataclass
class Person:
    """An end user, and how much is known of them."""

    user_id: str
    messages: int = 0
    facts: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    messages_by_agent: dict[UUID, int] = field(default_factory=dict)


def known_users(
    *,
    agent_id: UUID | None = None,
    user_id: str | None = None,
    beyond: str | None = None,
    falling: bool = False,
    limit: int,
) -> list[str]:
    """Return ids of users with messages or facts in the tenant that we are in, in their order.

    Args:
        agent_id: only those whom this agent knows.
        user_id: only this one, if known.
        beyond: only those after it (before it, if falling).
    """
    narrowing = " AND user_id IS NOT NULL"
    if agent_id is not None:
        narrowing += " AND agent_id = %(agent)s"
    if user_id is not None:
        narrowing += " AND user_id = %(user)s"
    compare = "<" if falling else ">"
    start = "" if beyond is None else f" AND user_id {compare} %(beyond)s"
    sql = _KNOWN.format(
        extreme="max" if falling else "min",
        first=_probes(narrowing + start, falling=falling),
        following=_probes(f"{narrowing} AND user_id {compare} known.user_id", falling=falling),
    )
    parameters = {
        "tenant": required_tenant_id(),
        "agent": agent_id,
        "user": user_id,
        "beyond": beyond,
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [found for (found,) in cursor.fetchall()]


def people(user_ids: Sequence[str], *, agent_id: UUID | None = None) -> list[Person]:
    """Return what is known of these users, in this order, in two queries."""
    found = {user_id: Person(user_id) for user_id in user_ids}
    messages = Message.objects.filter(user_id__in=user_ids)
    facts = MemoryEntry.objects.as_of().filter(user_id__in=user_ids)
    if agent_id is not None:
        messages, facts = messages.filter(agent_id=agent_id), facts.filter(agent_id=agent_id)
    spoken = messages.values("user_id", "agent_id").annotate(
        count=Count("number"), first_at=Min("created_at"), last_at=Max("created_at")
    )
    for row in spoken.order_by("user_id", "agent_id"):
        person = found[row["user_id"]]
        person.messages += row["count"]
        person.messages_by_agent[row["agent_id"]] = row["count"]
        person.first_at = min(person.first_at or row["first_at"], row["first_at"])
        person.last_at = max(person.last_at or row["last_at"], row["last_at"])
    for fact in facts.values("user_id").annotate(count=Count("memory_id")).order_by("user_id"):
        found[str(fact["user_id"])].facts = fact["count"]
    return list(found.values())


def _probes(conditions: str, *, falling: bool) -> str:
    order = "DESC" if falling else "ASC"
    # Old versions of facts are no entries, and the index that is walked leaves them out.
    entries = f"{conditions} AND version_of IS NULL"
    return " UNION ALL ".join(
        _PROBE.format(table=table, conditions=narrowing, order=order)
        for table, narrowing in (("memory_message", conditions), ("memory_memoryentry", entries))
    )
