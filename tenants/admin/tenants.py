"""Operators' admin of tenants with their sizes, of domains, and of the operators themselves."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from unfold.admin import TabularInline
from unfold.decorators import action, display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from tenants import transaction
from tenants.admin.record_columns import EventColumns
from tenants.admin.recorded import RecordedAdmin, RecordedPeopleAdmin
from tenants.admin.sites import ReadOnlyModelAdmin, operator_site
from tenants.audit.changes import RowState
from tenants.audit.operator_log import record_by_person, record_of_site, state_of_tenant
from tenants.context import fetch_all, server_scope
from tenants.exceptions import InvalidTenant
from tenants.models import Domain, OperatorEvent, Tenant
from tenants.postgresql.exceptions import ServerDown
from tenants.schemas import provisioning
from tenants.schemas.migration_state import is_fitting, number_of_tenant_tables
from tenants.schemas.old_copies import KEPT, old_copies

# Rows are Postgres' running estimate, which is near enough and costs nothing.
_SIZES = """
SELECT n.nspname, count(*), coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint,
       coalesce(sum(s.n_live_tup) FILTER (WHERE c.relname = 'memory_message'), 0)::bigint,
       coalesce(sum(s.n_live_tup) FILTER (WHERE c.relname = 'orchestrator_agent'), 0)::bigint
FROM pg_namespace AS n JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p')
LEFT JOIN pg_stat_all_tables AS s ON s.relid = c.oid
WHERE n.nspname = ANY (%s)
GROUP BY n.nspname
"""


@dataclass(frozen=True, slots=True)
class Size:
    """What one schema holds."""

    tables: int = 0
    bytes: int = 0
    messages: int = 0
    agents: int = 0


def sizes_of(tenants: Iterable[Tenant]) -> dict[str, Size]:
    """The sizes of tenants by the names of their schemas, in one query for each server.

    None of a schema that is not there, or whose server is down.
    """
    on: dict[str, list[str]] = defaultdict(list)
    for tenant in tenants:
        on[tenant.server].append(tenant.schema_name)
    found: dict[str, Size] = {}
    for server, schema_names in on.items():
        with suppress(ServerDown), server_scope(server):
            found |= {name: Size(*numbers) for name, *numbers in fetch_all(_SIZES, [schema_names])}
    return found


class DomainInline(TabularInline):
    """Host names of one tenant."""

    model = Domain
    extra = 0
    min_num = 1

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """A table's heads are no labels to who cannot see them."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None:
            field.widget.attrs["aria-label"] = str(field.label)
        return field


class MigrationFilter(admin.SimpleListFilter):
    """Tenants whose schema is as this code wants it, and others."""

    title = "schema"
    parameter_name = "schema"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("current", "up to date"), ("behind", "to be migrated"), ("failed", "failed")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "current":
            return queryset.filter(is_fitting())
        if self.value() == "behind":
            return queryset.exclude(is_fitting())
        return queryset.exclude(provisioning_error="") if self.value() == "failed" else queryset


class SizedChangeList(ChangeList):
    """A page of tenants, all of whose sizes are asked for at once."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        sizes = sizes_of(self.result_list)
        for tenant in self.result_list:
            tenant.size = sizes.get(tenant.schema_name, Size())


class OperatorAdmin(RecordedAdmin):
    """A model's pages, which the operators' log has."""

    def record(
        self, request: HttpRequest, action: str, row: Model | None = None, **detail: Any
    ) -> None:
        """Write down what was done with a row, or with the list of them."""
        record_by_person(request, action, row or str(self.opts.verbose_name), **detail)


class TenantAdmin(OperatorAdmin):
    """Registers, suspends and resumes tenants; what is inside them it cannot see.

    The web process cannot make a schema: a tenant added here is set up by `manage.py owner_worker`,
    which `manage.py serve` runs, or by create_tenant. Deleting is a command (delete_tenant).
    """

    list_display = (
        *("slug", "name", "condition", "schema", "why", "host_names", "disk", "messages"),
        "created_at",
    )
    list_filter = ("state", MigrationFilter)
    search_fields = ("slug", "name", "domains__domain")
    readonly_fields = (
        *("id", "condition", "schema_name", "schema", "why", "disk", "messages", "agents"),
        *("created_at", "migrated_at", "server", "copies"),
    )
    fields = (
        *("slug", "name", "condition", "schema", "why", "migrated_at", "disk", "messages"),
        *("agents", "id", "schema_name", "server", "copies", "created_at"),
    )
    inlines = (DomainInline,)
    actions = ("suspend", "resume", "migrate_again")
    list_per_page = 50
    show_full_result_count = False

    def state_of(self, row: Any) -> RowState:
        return state_of_tenant(row)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        tenants: QuerySet[Tenant] = super().get_queryset(request)
        return tenants.annotate(fits=is_fitting()).prefetch_related("domains")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return SizedChangeList

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Tenant | None:
        tenant: Any = super().get_object(request, object_id, from_field)
        if tenant is not None:
            tenant.size = sizes_of([tenant]).get(tenant.schema_name, Size())
        found: Tenant | None = tenant
        return found

    def get_fields(self, request: HttpRequest, obj: Tenant | None = None) -> Any:
        return self.fields if obj else ("slug", "name")

    def get_readonly_fields(self, request: HttpRequest, obj: Tenant | None = None) -> Any:
        return (*self.readonly_fields, "slug") if obj else self.readonly_fields

    def has_delete_permission(self, request: HttpRequest, obj: Tenant | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:
        if change:
            # The rest of a registration is the owner's to write.
            obj.save(update_fields=form.changed_data)
        else:
            super().save_model(request, obj, form, change)
            self.message_user(
                request,
                f"{obj} is registered, and is being set up: it will be served in a moment, if"
                f" manage.py owner_worker runs. If not, manage.py create_tenant {obj} does it.",
                messages.WARNING,
            )

    @display(description="Host names")
    def host_names(self, obj: Tenant) -> str:
        return ", ".join(domain.domain for domain in obj.domains.all())

    @display(
        description="State",
        label={
            "active": "success",
            "suspended": "warning",
            "being set up": "info",
            "being moved": "info",
            "could not be set up": "danger",
        },
    )
    def condition(self, obj: Any) -> str:
        """The state; of one that has no schema yet, whether it can be made."""
        if obj.moving_to:
            return "being moved"
        if obj.state != Tenant.State.PROVISIONING:
            return str(obj.state)
        return "could not be set up" if obj.provisioning_error else "being set up"

    @display(
        description="Schema",
        label={
            "up to date": "success",
            "to be migrated": "warning",
            "failed": "danger",
            "waits for the owner's worker": "info",
            "being made": "info",
        },
    )
    def schema(self, obj: Any) -> str:
        """Whether the schema is as this code wants it."""
        if obj.migration_asked_at:
            return "waits for the owner's worker"
        if obj.provisioning_error:
            return "failed"
        if obj.state == Tenant.State.PROVISIONING:
            return "being made"
        return "up to date" if obj.fits else "to be migrated"

    @display(description="Why")
    def why(self, obj: Any) -> str:
        """What went wrong last, or how far one is that is being set up."""
        is_made = obj.state == Tenant.State.PROVISIONING and obj.size.tables
        made = f"{obj.size.tables} of about {number_of_tenant_tables()} tables" if is_made else ""
        return obj.provisioning_error or made

    @display(description="Old copies", empty_value="none")
    def copies(self, obj: Tenant) -> str:
        """Where it was until it was moved, and until when that is kept."""
        return ", ".join(
            f"{copy.schema_name} on {copy.server}, until {copy.left_at + KEPT:%Y-%m-%d %H:%M} UTC"
            for copy in old_copies(obj.pk)
        )

    @display(description="On disk")
    def disk(self, obj: Any) -> str:
        """What the schema takes, indexes included."""
        return filesizeformat(obj.size.bytes)

    @display(description="Messages")
    def messages(self, obj: Any) -> str:
        """About how many there are, by Postgres' statistics."""
        return f"{obj.size.messages:,}"

    @display(description="Agents")
    def agents(self, obj: Any) -> str:
        """About how many there are, by Postgres' statistics."""
        return f"{obj.size.agents:,}"

    @action(description="Suspend: stop serving, keep everything", permissions=["change"])
    def suspend(self, request: HttpRequest, queryset: QuerySet[Tenant]) -> None:
        self._set_state(request, queryset, provisioning.suspend_tenant, "suspend")

    @action(description="Resume: serve again", permissions=["change"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Tenant]) -> None:
        self._set_state(request, queryset, provisioning.resume_tenant, "resume")

    @action(description="Migrate again, or set up again", permissions=["change"])
    def migrate_again(self, request: HttpRequest, queryset: QuerySet[Tenant]) -> None:
        for tenant in self._each(request, queryset, provisioning.ask_to_migrate, "edit"):
            self.message_user(
                request,
                f"{tenant} will be migrated in a moment, if manage.py owner_worker runs. If"
                f" not, manage.py migrate --schema {tenant} does it.",
            )

    def _each(
        self, request: HttpRequest, queryset: QuerySet[Tenant], change: Any, action: str
    ) -> Iterator[Tenant]:
        """Change the tenants one by one, and yield those that were changed."""
        for tenant in queryset:
            try:
                with transaction.atomic():
                    was = self.state_of(tenant)
                    change(tenant)
                    self.record(request, action, tenant, before=was, after=self.state_of(tenant))
            except InvalidTenant as error:
                self.message_user(request, str(error), messages.ERROR)
            else:
                yield tenant

    def _set_state(
        self, request: HttpRequest, queryset: QuerySet[Tenant], change: Any, action: str
    ) -> None:
        for tenant in self._each(request, queryset, change, action):
            # Django's own log only: the operators' log has the change already.
            super(RecordedAdmin, self).log_change(request, tenant, f"Now {tenant.state}.")
            self.message_user(request, f"{tenant} is {tenant.state}")


class PersonAdmin(RecordedPeopleAdmin, OperatorAdmin):
    """Operators: who may log in to this site."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


class TeamAdmin(GroupAdmin, OperatorAdmin):  # type: ignore[misc]  # unfold has no types
    """Groups with their permissions."""


class OperatorEventAdmin(EventColumns, OperatorAdmin, ReadOnlyModelAdmin):
    """What operators did, and who tried to be one."""

    list_display = ("exact_time", "actor", "what", "subject", "name", "changed", "address")
    list_filter = ("action", "actor_kind", "created_at")
    search_fields = ("=actor", "=name", "=address")
    search_help_text = "The name of who did it, what it was done with, or an address."
    fields = (
        *("exact_time", "actor", "actor_kind", "actor_id", "address", "action", "subject", "name"),
        *("subject_id", "changes", "asked"),
    )
    show_full_result_count = False


operator_site.recorder = record_of_site
operator_site.register(Tenant, TenantAdmin)
operator_site.register(OperatorEvent, OperatorEventAdmin)
operator_site.register(User, PersonAdmin)
operator_site.register(Group, TeamAdmin)
