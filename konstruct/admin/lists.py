"""Parts of lists: a paginator that stops counting, filters, and short texts."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final
from uuid import UUID

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display

from konstruct.orchestrator.models import Agent
from tenants.admin.columns import ChoiceFilter


class AtLeast(int):
    """A number where counting stopped."""

    def __str__(self) -> str:
        return f"{number_format(int(self), force_grouping=True)}+"


class BoundedPaginator(Paginator):
    """Counts at most 10,000 rows, because counting a million takes long. Filters reach the rest."""

    max_count = 10_000

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        if not isinstance(rows, QuerySet):
            return len(rows)
        count = rows.order_by().values("pk")[: self.max_count + 1].count()
        return AtLeast(self.max_count) if count > self.max_count else count


def agent_names() -> dict[UUID, str]:
    """Every agent's name."""
    return dict(Agent.objects.values_list("pk", "name"))


class AgentFilter(ChoiceFilter):
    """Rows of one agent."""

    title = _("agent")
    parameter_name = "agent"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(pk), name) for pk, name in agent_names().items()]

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.filter(agent_id=value)


class UserFilter(admin.SimpleListFilter):
    """Rows of one user. Links name the user, because a list of all users would be too long."""

    title = _("user")
    parameter_name = "user"

    def has_output(self) -> bool:
        return self.value() is not None

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        user_id = request.GET.get("user", "")
        return [(user_id, user_id[:40])] if user_id else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        user_id = self.value()
        return queryset if user_id is None else self.rows_of(user_id.replace("\0", ""), queryset)

    def rows_of(self, user_id: str, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of a user. All agents are named, because indexes begin with the agent."""
        return queryset.filter(agent_id__in=agent_names(), user_id=user_id)


def model_page(model: Model | type[Model], page: str) -> str:
    """Return the name of a page of a model, such as "change" or "changelist", for `reverse`."""
    return f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"


def link(
    text: str,
    page: str,
    *arguments: Any,
    query: Mapping[str, Any] | None = None,
    fragment: str | None = None,
) -> SafeString:
    """Return a link to a page of the admin, for a column or a field.

    Args:
        text: the words of the link.
        page: the name of the page.
        arguments: arguments of its address.
        query: parameters of its address.
        fragment: the place in the page.
    """
    address = reverse(f"admin:{page}", args=arguments, query=query, fragment=fragment)
    return format_html('<a class="k-link" href="{}">{}</a>', address, text)


# Columns with ids that others have given, of any length, or with UUIDs.
LONG_IDS: Final = {
    "user_id": _("User"),
    "thread_id": _("Thread"),
    "message_id": _("Message"),
    "memory_id": _("Memory"),
    "subject_id": _("Id of the subject"),
}
# Longer ids are cut; a button copies the whole one.
MAX_ID_CHARACTERS = 24
SHOWN_ID_CHARACTERS = 18


def id_html(value: Any) -> SafeString | str:
    """Return an id for a list: a long one is cut, with a button that copies all of it."""
    text = "" if value is None else str(value)
    if len(text) <= MAX_ID_CHARACTERS:
        return format_html("<bdi>{}</bdi>", text) if text else "-"
    return format_html(
        '<span class="k-nowrap"><bdi title="{0}">{1}…</bdi> <button class="k-copy" type="button"'
        ' data-text="{0}" aria-label="{2}">{3}</button></span>',
        text,
        text[:SHOWN_ID_CHARACTERS],
        gettext("Copy the whole id"),
        gettext("Copy"),
    )


def column(name: str, description: Any, **options: Any) -> Any:
    """Return a column of a list for an annotation; the options are those of `display`."""

    @display(description=description, **options)
    def value(row: Any) -> Any:
        return getattr(row, name)

    value.__name__ = name
    return value


@cache
def id_column(name: str) -> Callable[[Any], SafeString | str]:
    """Return a column of a list for a field with ids."""

    @display(description=LONG_IDS[name], ordering=name)
    def column(row: Any) -> SafeString | str:
        value = id_html(getattr(row, name))
        known = getattr(row, "person_name", "") if name == "user_id" else ""
        return format_html("<bdi>{}</bdi> {}", known, value) if known else value

    column.__name__ = name
    typed: Callable[[Any], SafeString | str] = column
    return typed


@display(description=LONG_IDS["user_id"])
def person(row: Any) -> str:
    """The name and the whole id of a row's user."""
    return f"{row.person_name} ({row.user_id})" if row.person_name else row.user_id or "-"


@display(description=_("Content"))
def shortened(row: Any) -> str:
    """The beginning of a text, for lists."""
    return row.content if len(row.content) <= 100 else f"{row.content[:100]}…"


# An export has the column as a whole.
shortened.__name__ = "content"
