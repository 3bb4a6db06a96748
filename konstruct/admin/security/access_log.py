"""The access log and the exports of lists, read only."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import AgentRowsAdmin, AuditedReadOnlyAdmin
from konstruct.admin.lists import UserFilter
from tenants.admin.exports import list_title
from tenants.admin.record_columns import EventColumns
from tenants.admin.sites import tenant_site
from tenants.audit.models import AccessEvent, ListExport
from tenants.audit.pseudonyms import pseudonyms


class UserOfLogFilter(UserFilter):
    """The activity on one user's memory; links name the user."""

    def rows_of(self, user_id: str, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The user's, also under the pseudonyms of an erased user."""
        return queryset.filter(user_id__in=[user_id, *pseudonyms(user_id)])


@admin.register(AccessEvent, site=tenant_site)
class AccessEventAdmin(EventColumns, AgentRowsAdmin):
    """Actions and refusals, with the values before and after, the address and the time."""

    list_display = (
        "exact_time", "actor", "what", "subject_label", "user_id", "changed", "address",
    )  # fmt: skip
    list_filter = ("action", "actor_kind", UserOfLogFilter, "created_at")
    search_fields = ("=actor", "=user_id", "=subject_id", "=address")
    search_help_text = _(
        "The name of the actor, the id of the user, the id of the row, or an address."
    )
    fields = (
        *("exact_time", "actor", "actor_kind", "actor_id", "address", "action", "subject_label"),
        *("subject_id", "agent", "user_id", "changes", "asked", "request_id"),
    )


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
