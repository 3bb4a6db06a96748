"""What lists share: counting no further than is useful, agents by their names, short texts."""

from functools import cached_property
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from unfold.decorators import display

from konstruct.orchestrator.models import Agent


class AtLeast(int):
    """A number where counting stopped."""

    def __str__(self) -> str:
        return f"{int(self):,}+"


class BoundedPaginator(Paginator):
    """Counts no further than this: nobody pages so far, and a million rows take a while to count.

    What is older is found by narrowing the list.
    """

    most = 10_000

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        if not isinstance(rows, QuerySet):
            return len(rows)
        counted = rows.order_by().values("pk")[: self.most + 1].count()
        return AtLeast(self.most) if counted > self.most else counted


def agent_names() -> dict[UUID, str]:
    """Every agent's name."""
    return dict(Agent.objects.values_list("pk", "name"))


class ChoiceFilter(admin.SimpleListFilter):
    """A filter with fixed values: a subclass declares `values` and `narrow`."""

    values: ClassVar[dict[str, str]]
    """The label of each value of the parameter."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(self.values.items())

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        return self.narrow(queryset, value) if value in self.values else queryset

    def narrow(self, rows: Any, value: str) -> Any:
        """Return the rows that match a value."""
        raise NotImplementedError


class AgentFilter(admin.SimpleListFilter):
    """What one agent remembers."""

    title = "agent"
    parameter_name = "agent"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(pk), name) for pk, name in agent_names().items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        known = {pk for pk, _ in self.lookup_choices}
        return queryset.filter(agent_id=self.value()) if self.value() in known else queryset


class UserFilter(admin.SimpleListFilter):
    """One user's rows: named in the address by links, for there may be a million users."""

    title = "user"
    parameter_name = "user"

    def has_output(self) -> bool:
        return self.value() is not None

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        asked = request.GET.get("user", "")
        return [(asked, asked[:40])] if asked else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        asked = self.value()
        return queryset if asked is None else self.rows_of(asked.replace("\0", ""), queryset)

    def rows_of(self, user_id: str, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The user's; indexes begin with the agent."""
        return queryset.filter(agent_id__in=agent_names(), user_id=user_id)


def with_agent_name(rows: QuerySet[Any], **more: str) -> QuerySet[Any]:
    """Add `agent_name` to rows that have an agent_id, in the same query.

    `more` names further columns with an agent's id, by what their names are added as.
    """
    return rows.annotate(
        **{
            name: Subquery(Agent.objects.filter(pk=OuterRef(column)).values("name")[:1])
            for name, column in {"agent_name": "agent_id", **more}.items()
        }
    )


@display(description="Agent")
def agent(row: Any) -> str:
    """The agent's name, or its id where it is not known (any more)."""
    return row.agent_name or str(row.agent_id or "all agents")


@display(description="Content")
def shortened(row: Any) -> str:
    """The beginning of a text, for lists."""
    return row.content if len(row.content) <= 100 else f"{row.content[:100]}…"
