"""Entities: the users, agents, apps and runs that have memories."""

from typing import Any
from uuid import UUID

from django.db.models import CharField, Count, F, Max, Min, QuerySet, TextField, Value
from django.db.models.functions import Cast
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.bodies.fields import checked_query
from konstruct.api.models import KeyScope
from konstruct.api.resources.agents.agent_names import agent_names
from konstruct.interfaces.mem0 import filters
from konstruct.interfaces.mem0.base import Mem0View
from konstruct.interfaces.mem0.memories import page_address
from konstruct.interfaces.mem0.selection import memories_of, named_in
from konstruct.interfaces.mem0.serializers import LAST_PAGE, PageSerializer
from memory.exceptions import FactNotFound
from memory.facts import delete_facts
from memory.models import MemoryAttribute
from memory.models.fact_querysets import MemoryEntryQuerySet

LARGEST_PAGE = 1_000


class EntityPageSerializer(PageSerializer):
    """Query parameters of the list: clients name none, and take the first page for all."""

    page = serializers.IntegerField(required=False, default=1, min_value=1, max_value=LAST_PAGE)
    page_size = serializers.IntegerField(
        required=False, default=LARGEST_PAGE, min_value=1, max_value=LARGEST_PAGE
    )


class EntitiesView(Mem0View):
    """All that have memories."""

    def get(self, request: Request) -> Response:
        """List them by kind and name."""
        query = checked_query(request, EntityPageSerializer)
        page, size = query["page"], query["page_size"]
        rows = _entities(memories_of(self.caller))
        count = rows.count()
        found = [*rows.order_by("entity", "called")[(page - 1) * size : page * size]]
        names = agent_names(UUID(row["called"]) for row in found if row["entity"] == "agent")
        return Response(
            {
                "count": count,
                "next": page_address(request, page + 1) if page * size < count else None,
                "previous": page_address(request, page - 1) if page > 1 else None,
                "results": [_document(row, names) for row in found],
            }
        )


class EntityView(Mem0View):
    """One of them."""

    # Who may write memories may take them back.
    scopes = {"DELETE": KeyScope.WRITE}

    def delete(self, request: Request, kind: str, name: str) -> Response:
        """Delete its memories; a user's messages, and an agent itself, stay."""
        wanted = filters.parse({f"{kind}_id": {"eq": name}})
        removed = 0
        if filters.is_confined(wanted):
            removed = delete_facts(memories_of(self.caller, wanted, expired=True))
        if not removed:
            raise FactNotFound(f"there are no memories of the {kind} {name!r} for this key")
        self.note(deleted=removed, named=named_in(wanted))
        return Response({"message": "Entity deleted successfully!", "count": removed})


def _entities(facts: MemoryEntryQuerySet) -> QuerySet[Any]:
    """Who has memories among these facts, with how many, the first and the last."""
    users = _grouped(facts.filter(user_id__isnull=False), "user", F("user_id"), "")
    agents = _grouped(
        facts.filter(agent_id__isnull=False), "agent", Cast("agent_id", TextField()), ""
    )
    inner = [
        _grouped(
            MemoryAttribute.objects.filter(
                key=f"{kind}_id", kind="text", memory__in=facts.values("memory_id")
            ),
            kind,
            F("text"),
            "memory__",
        )
        for kind in ("app", "run")
    ]
    return users.union(agents, *inner, all=True)


def _grouped(rows: QuerySet[Any], kind: str, called: Any, of_fact: str) -> QuerySet[Any]:
    return (
        rows.order_by()
        .annotate(entity=Value(kind, CharField()), called=called)
        .values("entity", "called")
        .annotate(
            total=Count("pk"),
            first_at=Min(f"{of_fact}created_at"),
            last_at=Max(f"{of_fact}updated_at"),
        )
    )


def _document(row: dict[str, Any], names: dict[UUID, str]) -> dict[str, Any]:
    kind, called = row["entity"], row["called"]
    name = names.get(UUID(called), called) if kind == "agent" else called
    return {
        "id": name,
        "name": name,
        "type": kind,
        "total_memories": row["total"],
        "created_at": row["first_at"],
        "updated_at": row["last_at"],
    }
