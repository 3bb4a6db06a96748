"""The access log, and the exports of lists."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import AgentRowsAdmin, AuditedReadOnlyAdmin, newest_name
from konstruct.admin.lists import UserFilter
from memory.browse.people import displayed_names
from tenants.admin.columns import EventColumns
from tenants.admin.exports import list_title
from tenants.admin.sites import tenant_site
from tenants.audit.models import AccessEvent, ListExport, about_people
from tenants.audit.people import Person


class UserOfLogFilter(UserFilter):
    """The activity on one user's memory; links name the user."""

    def rows_of(self, user_id: str, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The entries about the user, and those of pages and exports that showed them."""
        return queryset.filter(about_people(user_id))


@admin.register(AccessEvent, site=tenant_site)
class AccessEventAdmin(EventColumns, AgentRowsAdmin):
    """Actions and refusals, with the values before and after, the address and the time.

    An entry has pseudonyms. Pages and exports show the people whose rows exist.
    """

    list_display = (
        *("created_at", "actor", "what", "subject_label", "user_id", "people_count", "changed"),
        "address",
    )
    list_filter = ("action", "actor_kind", UserOfLogFilter, "created_at")
    search_fields = ("=actor", "=subject_id", "=address")
    search_help_text = _(
        "The name of the actor, the id of the user, the id of the row, or an address."
    )
    fields = (
        *("created_at", "actor", "actor_kind", "actor_id", "address", "action", "subject_label"),
        *("subject_id", "agent", "user_id", "people_count", "shown_people", "changes", "asked"),
        "request_id",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add the user of the pseudonym, and the name of the user."""
        known = Person.objects.filter(pseudonym=OuterRef("pseudonym")).values("user_id")
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.annotate(user_id=Subquery(known)).annotate(person_name=newest_name())

    def search(self, request: HttpRequest, rows: Any, query: str) -> Any:
        """Search by an actor, the id of a row or an address, or by the id of a person."""
        return super().search(request, rows, query) | rows.filter(about_people(query))

    @display(description=_("User"))
    def user_id(self, event: Any) -> str:
        """The id of the user; empty once the person is erased."""
        return event.user_id or ""

    @display(description=_("Who was shown"))
    def shown_people(self, event: Any) -> str:
        """The names and ids of the people that were shown, of those that are not erased."""
        if not hasattr(event, "known_people"):
            _read_people([event])
        return ", ".join(event.known_people)

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Read the people of exported rows."""
        _read_people(rows)

    def export_columns(self, request: HttpRequest) -> dict[str, Any]:
        """Return the columns of an export, with people in place of pseudonyms."""
        columns = super().export_columns(request)
        people = {"user_id": "user_id", "person_name": "person_name", "people": self.shown_people}
        left_out = ("pseudonym", "pseudonyms")
        return {name: columns[name] for name in columns if name not in left_out} | people


def _read_people(events: Iterable[Any]) -> None:
    """Set `known_people` of entries: the names and ids of the people that were shown."""
    events = list(events)
    pseudonyms = {pseudonym for event in events for pseudonym in event.pseudonyms or ()}
    people = Person.objects.filter(pseudonym__in=pseudonyms).values_list("pseudonym", "user_id")
    users: dict[UUID, str] = dict(people) if pseudonyms else {}
    names = displayed_names(users.values())
    for event in events:
        known = [users[pseudonym] for pseudonym in event.pseudonyms or () if pseudonym in users]
        event.known_people = [
            f"{names[user_id]} ({user_id})" if user_id in names else user_id for user_id in known
        ]


@admin.register(ListExport, site=tenant_site)
class ListExportAdmin(AuditedReadOnlyAdmin):
    """Exports of the last day. Their files are for those who requested them."""

    list_display = (
        "title", "member", "query", "rows", "size", "created_at", "finished_at", "downloaded_at",
    )  # fmt: skip
    list_filter = ("created_at",)
    fields = (*list_display[:3], "time_zone", *list_display[3:], "error")
    ordering = ("-created_at", "id")

    @admin.display(description=_("list"), ordering="list_name")
    def title(self, row: ListExport) -> str:
        """Return the name of the list."""
        return list_title(row.list_name)
