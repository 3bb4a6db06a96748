"""Filters of lists by django-filter, checked with the same fields as bodies."""

import copy
from typing import Any, Self

import django_filters
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

from konstruct.api.auth.permissions import Caller, caller_of
from konstruct.api.http import bodies
from memory.conversations.transcript import filter_by_metadata


class Filter(django_filters.Filter):
    """A filter with a field of REST framework: `Filter(ChannelIdField, "Only of this thread.")`.

    Args:
        field: the class of the field.
        help_text: for the OpenAPI description.
        lookup: the lookup of Django. Default: the filter's name.
        method: the method of the FilterSet that filters.
        required: whether the parameter must be given.
        options: further options of the field.
    """

    def __init__(
        self,
        field: type[serializers.Field],
        help_text: str,
        *,
        lookup: str = "",
        method: str | None = None,
        required: bool = False,
        **options: Any,
    ) -> None:
        name, _, expression = lookup.rpartition("__")
        super().__init__(name or None, expression or None, method=method)
        self.serializer_field = field(required=required, help_text=help_text, **options)

    def __deepcopy__(self, memo: Any) -> Self:
        """Return a shallow copy, since no request changes the field, with a method of its own."""
        duplicate = copy.copy(self)
        duplicate.method = self.method
        return duplicate


class FlagField(serializers.ChoiceField):
    """A filter with two words as its choices: the first means true, the second false."""

    def to_internal_value(self, data: Any) -> Any:
        """Return whether the first word was sent."""
        return bool(super().to_internal_value(data) == next(iter(self.choices)))


class ChoiceFilter(Filter):
    """A filter with a fixed set of values."""

    choice_field: type[serializers.Field] = serializers.ChoiceField

    def __init__(self, help_text: str, choices: Any, **options: Any) -> None:
        super().__init__(self.choice_field, help_text, choices=choices, **options)


class FlagFilter(ChoiceFilter):
    """A filter with two words as its choices: the first means true, the second false."""

    choice_field = FlagField


class FilterSet(django_filters.FilterSet):
    """The filters of a list. `data` has the values that the view has checked by `query()`."""

    @classmethod
    def query(cls) -> type[bodies.StrictSerializer]:
        """Return the serializer of the query parameters."""
        fields = {name: one.serializer_field for name, one in cls.base_filters.items()}
        return type(f"{cls.__name__}Query", (bodies.StrictSerializer,), fields)

    @property
    def caller(self) -> Caller:
        """The program or person of the request."""
        return caller_of(self.request)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows that match all filters of the request."""
        for name, value in self.data.items():
            queryset = self.filters[name].filter(queryset, value)
        return queryset

    def of_agent(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Filter by the name or id of an agent, in the column of the filter's name."""
        column = "agent_id" if name == "agent" else f"{name}_id"
        return rows.filter(**{column: self.caller.agent(value).id})

    def of_user(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Filter by a user within the binding of the key."""
        return rows.filter(user_id=self.caller.user(value))


class AgentUserFilter(FilterSet):
    """Filters by agent and user."""

    agent = Filter(bodies.ChannelIdField, "Only of this agent (name or id).", method="of_agent")
    user_id = Filter(bodies.ChannelIdField, "Only of this user.", method="of_user")


class ThreadFilter(AgentUserFilter):
    """Filters by agent, user and conversation."""

    thread_id = Filter(bodies.ChannelIdField, "Only of this conversation.")


class MemoryOwnerFilter(FilterSet):
    """Filters by agent and user, both required."""

    agent = Filter(bodies.ChannelIdField, "Agent (name or id).", method="of_agent", required=True)
    user_id = Filter(bodies.ChannelIdField, "The user.", method="of_user", required=True)


class MetadataFilter(FilterSet):
    """Filters of messages by their metadata."""

    filters = Filter(bodies.FiltersTextField, bodies.FILTERS_AS_TEXT, method="of_metadata")

    def of_metadata(self, rows: QuerySet[Any], name: str, value: Any) -> QuerySet[Any]:
        """Filter by conditions on the metadata."""
        return filter_by_metadata(rows, value)


class TimeRangeFilter(FilterSet):
    """Filters by the time of creation."""

    since = Filter(
        bodies.AwareDateTimeField,
        "Only from this moment on.",
        lookup="created_at__gte",
    )
    until = Filter(
        bodies.AwareDateTimeField,
        "Only before this moment.",
        lookup="created_at__lt",
    )


class FilterBackend(BaseFilterBackend):
    """Applies the filters that the view's operation declares."""

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        """Return the filtered rows of a list."""
        filterset_class = view.operation and view.operation.filters
        if filterset_class is None:
            return queryset
        return filterset_class(view.query, queryset, request=request).filter_queryset(queryset)
