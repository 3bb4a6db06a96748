"""QuerySets that Django compiles once, for reads in every reply.

Building and compiling a QuerySet takes Django 1 to 10 ms of CPU time, more than Postgres needs for
the statement. A compiled read keeps the SQL and binds new values with each call.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, Generic, TypeVar

from django.db import connections, router
from django.db.models import Expression, Model, QuerySet
from django.utils.functional import cached_property

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class _Placeholder:
    name: str


class Parameter(Expression):
    """A parameter of a compiled read. It is sent unchanged."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", (_Placeholder(self.name),)


class CompiledRead(Generic[M]):
    """A function that returns a QuerySet, compiled at its first call in the process.

    Example:
        >>> @CompiledRead
        ... def agents_named(name: Any) -> QuerySet[Agent]:
        ...     return Agent.objects.filter(name=name)
        >>> agents_named(name="ada")
        [<Agent: ada>]

    The function is called once, with a `Parameter` for each of its parameters, which can be used
    where Django takes an expression. All else in the QuerySet, such as a slice, is fixed.

    Args:
        make: the function. A QuerySet of models has no `select_related`; deferred fields and
            annotations are read as Postgres returns them.
    """

    def __init__(self, make: Callable[..., QuerySet[M, Any]]) -> None:
        self._make = make
        update_wrapper(self, make)

    def __call__(self, **values: Any) -> list[M]:
        """Return the models, with annotations as attributes."""
        queryset, sql, _ = self._compiled
        return [*queryset.model._default_manager.raw(sql, self._bound(values))]

    def first(self, **values: Any) -> M | None:
        """Return the first model; None if there is none."""
        return next(iter(self(**values)), None)

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a QuerySet of values, as Postgres returns them."""
        queryset, sql, _ = self._compiled
        with connections[router.db_for_read(queryset.model)].cursor() as cursor:
            cursor.execute(sql, self._bound(values))
            return cursor.fetchall()

    @cached_property
    def _compiled(self) -> tuple[QuerySet[M, Any], str, tuple[Any, ...]]:
        queryset = self._make(**{name: Parameter(name) for name in self._names})
        return (queryset, *queryset.query.sql_with_params())

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self._make).parameters)

    def _bound(self, values: dict[str, Any]) -> list[Any]:
        return [
            values[parameter.name] if isinstance(parameter, _Placeholder) else parameter
            for parameter in self._compiled[2]
        ]
