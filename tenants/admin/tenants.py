"""Operators' admin of tenants (figures, quotas, deletion, invitation), domains, and operators."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Final
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import format_lazy
from django.utils.timesince import timesince
from django.utils.translation import gettext, gettext_lazy as _
from unfold.admin import TabularInline
from unfold.decorators import action, display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminEmailInputWidget, UnfoldAdminTextInputWidget

from tenants import context, error_texts, exceptions, outages
from tenants.admin import recorded_admin as base, sites
from tenants.audit import operator_log
from tenants.audit.changes import RowState
from tenants.audit.roles import admins
from tenants.limits import quotas
from tenants.limits.quotas import Quota
from tenants.models import Domain, OperatorEvent, Tenant
from tenants.schemas import migrating, provisioning
from tenants.servers import servers

# --- Figures, deletion and invitation ------------------------------------------------------------

# No row of a tenant is read: jobs are counted by a function that names no job.
_BACKLOGS = "SELECT tenant_id, waiting, failed, oldest FROM public.job_backlogs()"


@dataclass(frozen=True, slots=True)
class Backlog:
    """Jobs of a tenant: how many wait and have failed, and since when the oldest is due."""

    waiting: int = 0
    failed: int = 0
    oldest: datetime | None = None


def backlogs(of_servers: Iterable[str] = ()) -> tuple[dict[UUID, Backlog], list[str]]:
    """Return the jobs of all tenants that have some, with one query for each server.

    Returns:
        The jobs by tenant, and the servers that are down.
    """
    found: dict[UUID, Backlog] = {}
    down = []
    for server in set(of_servers) or servers():
        try:
            with context.server_scope(server):
                found |= {
                    tenant_id: Backlog(*rest) for tenant_id, *rest in context.fetch_all(_BACKLOGS)
                }
        except outages.ServerDown:
            down.append(server)
    return found, sorted(down)


def add_figures(tenants: list[Any]) -> None:
    """Set `backlog` and `is_down` (whether its server is down) of each tenant."""
    waiting, down = backlogs({tenant.server for tenant in tenants}) if tenants else ({}, [])
    for tenant in tenants:
        tenant.backlog = waiting.get(tenant.pk, Backlog())
        tenant.is_down = tenant.server in down


def attention_context(request: HttpRequest) -> dict[str, Any]:
    """Return the problems that tenants have, each with its list, for users who may see tenants."""
    if not request.user.has_perm("tenants.view_tenant"):
        return {}
    tenants = Tenant.objects.all()
    jobs, down = backlogs()
    problems = (
        (
            _("To be migrated"),
            tenants.provisioned().exclude(migrating.is_fitting()).count(),
            "schema=behind",
        ),
        (
            _("Could not be set up or migrated"),
            tenants.exclude(provisioning_error="").count(),
            "schema=failed",
        ),
        (_("Jobs that wait"), sum(of.waiting for of in jobs.values()), "jobs=waiting"),
        (_("Jobs that were given up"), sum(of.failed for of in jobs.values()), "jobs=failed"),
        (
            _("At a limit of a quota"),
            tenants.serving().with_reached_quotas().count(),
            "quota=reached",
        ),
        (
            _("To be deleted"),
            tenants.filter(deletion_asked_at__isnull=False).count(),
            "state__exact=suspended",
        ),
    )
    states = tenants.aggregate(
        all=Count("pk"), active=Count("pk", filter=Q(state=Tenant.State.ACTIVE))
    )
    found = [problem for problem in problems if problem[1]]
    return {"problems": found, "down": down, "tenants": states}


CHANGE, DELETE = "tenants.change_tenant", "tenants.delete_tenant"


@sites.operator_site.page(
    "tenants/<uuid:tenant_id>/remove/", permission=DELETE, title=_("Delete the tenant")
)
def remove_tenant(request: HttpRequest, tenant_id: UUID) -> sites.Content:
    """Ask for the tenant's name, then have it deleted after the grace period."""
    tenant = get_object_or_404(Tenant.objects.prefetch_related("domains"), pk=tenant_id)
    problem, days = "", provisioning.GRACE.days
    if request.method == "POST":
        if request.POST.get("typed") == tenant.slug:
            service = provisioning.request_deletion
            if try_change(request, tenant, service, action="request_deletion"):
                done = gettext("%(slug)s is suspended, and is deleted after %(days)s days.")
                messages.success(request, done % {"slug": tenant.slug, "days": days})
            return redirect("admin:tenants_tenant_change", tenant.pk)
        problem = gettext("Type %(slug)s to confirm.") % {"slug": tenant.slug}
    else:
        operator_log.record_person_action(request, "view", tenant)
    return {"tenant": tenant, "days": days, "problem": problem}


@sites.operator_site.page(
    "tenants/<uuid:tenant_id>/invite/", permission=CHANGE, title=_("Invite the first admin")
)
def invite_admin(request: HttpRequest, tenant_id: UUID) -> sites.Content:
    """Show the link with which the first admin of a tenant chooses a name and a password."""
    tenant = get_object_or_404(Tenant.objects.prefetch_related("domains"), pk=tenant_id)
    if not request.user.has_perm("tenants.add_tenant"):
        raise PermissionDenied
    if has_admin(tenant):
        has_one = gettext("%(slug)s has an admin, who invites others.")
        messages.error(request, has_one % {"slug": tenant.slug})
        return redirect("admin:tenants_tenant_change", tenant.pk)
    address, link, problem = admin_address(request, tenant), "", ""
    email = request.POST.get("email", request.GET.get("email", "")).strip()
    try:
        forms.EmailField(required=False, max_length=254).clean(email)
    except forms.ValidationError as error:
        problem = error.messages[0]
    if request.method == "POST" and address and not problem:
        link = address + f"first-admin/{sites.first_admin_token(tenant, email)}/"
        operator_log.record_person_action(request, "edit", tenant, invited="link")
    else:
        operator_log.record_person_action(request, "view", tenant)
    return {"tenant": tenant, "email": email, "link": link, "problem": problem}


def has_admin(tenant: Tenant) -> bool:
    """Return whether an admin of the tenant can log in."""
    if tenant.state == Tenant.State.PROVISIONING:
        return False
    with context.tenant_scope(tenant.pk):
        return admins().exists()


def admin_address(request: HttpRequest, tenant: Tenant) -> str:
    """Return the address of a tenant's admin, with the scheme and port of the request."""
    domains = sorted(tenant.domains.all(), key=lambda domain: not domain.is_primary)
    if not domains:
        return ""
    port = request.get_port() if ":" in request.get_host() else ""
    host = f"{domains[0].domain}:{port}" if port else domains[0].domain
    return f"{request.scheme}://{host}/admin/"


def try_change(
    request: HttpRequest, tenant: Tenant, change: Callable[[Tenant], None], *, action: str
) -> bool:
    """Change a tenant and log it. On InvalidTenant, show the error and return False."""
    try:
        operator_log.change_tenant(
            tenant, change, partial(operator_log.record_person_action, request, action)
        )
    except exceptions.InvalidTenant as error:
        messages.error(request, error_texts.translate_error(str(error)))
        return False
    return True


# --- Lists and forms ------------------------------------------------------------------------------


class DomainInline(TabularInline):
    """Host names of one tenant. The operators' log has their changes as changes of the tenant."""

    model = Domain
    extra = 0

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Remove the labels of fields: the table has column heads, and labels would repeat them."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None:
            field.widget.attrs["aria-label"] = str(field.label)
        return field


class MigrationFilter(base.ChoiceFilter):
    """Tenants by whether their schema is up to date."""

    title = _("schema")
    parameter_name = "schema"
    values = {"behind": _("to be migrated"), "failed": _("failed")}

    def narrow(self, rows: Any, value: str) -> Any:
        if value == "failed":
            return rows.exclude(provisioning_error="")
        return rows.exclude(migrating.is_fitting())


class JobsFilter(base.ChoiceFilter):
    """Tenants with jobs that wait, or that were given up."""

    title = _("jobs")
    parameter_name = "jobs"
    values = {"waiting": _("waiting"), "failed": _("given up")}

    def narrow(self, rows: Any, value: str) -> Any:
        found, _down = backlogs()
        return rows.filter(pk__in=[pk for pk, jobs in found.items() if getattr(jobs, value)])


class SizedChangeList(base.DeclaredChangeList):
    """A page of tenants, with all figures in one query for each server."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        page: Any = self.model_admin
        page.prepare_rows(request, self.result_list)


# Name of the form field, quota, and level of the limit.
FIELDS: Final = tuple(
    (f"quota_{quota.value}_{level}", quota, level)
    for quota in Quota
    for level in ("soft", "hard")
    if level == "hard" or quota.has_soft_limit
)
LIMIT_FIELDS: Final = tuple(name for name, _quota, _level in FIELDS)
_LEVELS: Final = {"soft": _("soft limit"), "hard": _("hard limit")}


def _field(quota: Quota, level: str) -> forms.DecimalField:
    return forms.DecimalField(
        required=False,
        # Two operators may edit the same page: each changes only the fields that they edited.
        show_hidden_initial=True,
        min_value=1 if quota is Quota.REQUESTS else 0,
        max_value=quotas.MAX_LIMIT,
        decimal_places=6 if quota is Quota.COST else 0,
        widget=UnfoldAdminTextInputWidget(attrs={"inputmode": "decimal"}),
        label=format_lazy("{}: {}", quota.label, _LEVELS[level]),
        help_text=_("Empty: unlimited."),
    )


class QuotaFields(forms.ModelForm):
    """A tenant with its limits."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        limits = quotas.limits_of(self.instance.quotas)
        for name, quota, level in FIELDS:
            if name in self.fields:
                self.initial[name] = getattr(limits.get(quota, quotas.UNLIMITED), level)

    def clean(self) -> dict[str, Any]:
        """Check each quota's limits together."""
        cleaned: dict[str, Any] = super().clean() or {}
        for quota, limit in self.limits(cleaned).items():
            if limit.soft is not None and limit.hard is not None and limit.soft > limit.hard:
                text = gettext("%(quota)s: the soft limit is above the hard one.")
                self.add_error(f"quota_{quota.value}_hard", text % {"quota": quota.label})
        return cleaned

    @staticmethod
    def limits(cleaned: dict[str, Any]) -> dict[Quota, quotas.Limit]:
        """Return the limits of the form."""
        values: dict[Quota, dict[str, Decimal | None]] = {quota: {} for quota in Quota}
        for name, quota, level in FIELDS:
            values[quota][level] = cleaned.get(name)
        return {quota: quotas.Limit(**limits) for quota, limits in values.items()}


TenantForm: Final = type(
    "TenantForm", (QuotaFields,), {name: _field(quota, level) for name, quota, level in FIELDS}
)


def save_limits(form: Any) -> None:
    """Set the limits of the quotas that were changed in the form."""
    changed = {quota for name, quota, _level in FIELDS if name in form.changed_data}
    if changed:
        limits = form.limits(form.cleaned_data)
        found = quotas.set_limits(form.instance.pk, {quota: limits[quota] for quota in changed})
        form.instance.quotas = found.quotas


class ReachedFilter(base.ChoiceFilter):
    """Tenants that have reached a limit."""

    title = _("quota")
    parameter_name = "quota"
    values = {"reached": _("a limit is reached")}

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.with_reached_quotas()


class NewTenantForm(error_texts.TranslatedModelForm):
    """A tenant in one form: the host name and the first admin are optional."""

    domain = forms.CharField(
        required=False,
        max_length=253,
        label=_("Host name"),
        widget=UnfoldAdminTextInputWidget,
        help_text=format_lazy(
            _("Empty: the slug, followed by .{suffix}."), suffix=settings.TENANT_DOMAIN_SUFFIX
        ),
    )
    email = forms.EmailField(
        required=False,
        label=_("First admin"),
        widget=UnfoldAdminEmailInputWidget,
        help_text=_("Mail address. The next page has the link of the invitation."),
    )

    class Meta:
        model = Tenant
        fields = ("slug", "name")

    def full_clean(self) -> None:
        """Check the entries, then the host name; the default only if the slug has no error."""
        super().full_clean()
        cleaned = self.cleaned_data if self.is_bound else {}
        if "domain" in cleaned and (cleaned["domain"] or "slug" in cleaned):
            cleaned["domain"] = cleaned["domain"] or provisioning.default_domain(cleaned["slug"])
            try:
                Domain(domain=cleaned["domain"]).full_clean(exclude=["tenant"])
            except forms.ValidationError as error:
                self.add_error("domain", error.message_dict["domain"])


class OperatorAdmin(base.RecordedAdmin):
    """A model's pages. Changes are recorded in the operators' log."""

    log_list = "tenants_operatorevent"

    def record(
        self, request: HttpRequest, action: str, row: Model | None = None, **detail: Any
    ) -> None:
        """Log an action on a row, or on the list."""
        operator_log.record_person_action(
            request, action, row or self.opts.verbose_name_raw, **detail
        )


def measured(name: str, description: Any, as_text: Callable[[Any], str]) -> Any:
    """Return a column of the last measurement of a tenant's usage."""

    @display(description=description, empty_value="-")
    def value(tenant: Tenant) -> str | None:
        value = {**tenant.usage, **tenant.usage.get("month", {})}.get(name)
        return None if value is None else as_text(value)

    value.__name__ = name
    return value


MEASURED: Final = (
    *(
        measured(quota.value, quota.label, lambda number: base.format_number(Decimal(number)))
        for quota in (
            Quota.MESSAGES,
            Quota.TOKENS,
            Quota.MEMORIES,
            Quota.API_KEYS,
        )
    ),
    measured("cost", Quota.COST.label, lambda number: base.format_number(Decimal(number), 2)),
    measured("storage_bytes", _("On disk"), filesizeformat),
    measured(
        "measured_at", _("Measured"), lambda text: base.time_text(datetime.fromisoformat(text))
    ),
)


class TenantAdmin(OperatorAdmin):
    """Registers, suspends and resumes tenants. It cannot see their content.

    The web process cannot create a schema: `manage.py owner_worker`, which `manage.py serve` runs,
    or `manage.py create_tenant` sets up a tenant that is added here.
    """

    list_display = (
        *("slug", "name", "condition", "schema", "waiting", "failed", *MEASURED),
        *("reached", "host_names", "created_at", "provisioning_error"),
    )
    list_filter = ("state", MigrationFilter, JobsFilter, ReachedFilter)
    search_fields = ("slug", "name", "domains__domain")
    readonly_fields = (
        *("id", "condition", "schema_name", "schema", "provisioning_error", "waiting", "failed"),
        *("created_at", "migrated_at", "server", "reached", *MEASURED),
    )
    fields = (
        *("slug", "name", "condition", "schema", "provisioning_error", "migrated_at", "waiting"),
        *("failed", *MEASURED, "reached", "id", "schema_name", "server", "created_at"),
        *LIMIT_FIELDS,
    )
    inlines = (DomainInline,)
    actions = ("suspend", "resume", "restore", "migrate_again")
    change_form_outer_before_template = "konstruct/tenant_panel.html"
    redirects_after_add = True
    refused = frozenset({"delete"})
    list_per_page = 50
    show_full_result_count = False

    def state_of(self, row: Any) -> RowState:
        return operator_log.state_of_tenant(row)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        tenants: QuerySet[Tenant] = super().get_queryset(request)
        return tenants.annotate(fits=migrating.is_fitting()).prefetch_related("domains")

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Add the figures."""
        add_figures(rows)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[base.DeclaredChangeList]:
        return SizedChangeList

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Tenant | None:
        tenant: Any = super().get_object(request, object_id, from_field)
        if tenant is not None:
            add_figures([tenant])
        return tenant

    def get_fields(self, request: HttpRequest, obj: Tenant | None = None) -> Any:
        return self.fields if obj else ("slug", "name", "domain", "email")

    def get_form(
        self, request: HttpRequest, obj: Tenant | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kwargs["form"] = TenantForm if obj else NewTenantForm
        return super().get_form(request, obj, change=change, **kwargs)

    def get_inlines(self, request: HttpRequest, obj: Tenant | None = None) -> Any:
        return self.inlines if obj else ()

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the tenant, with a link to its admin."""
        if (obj := kwargs.get("obj")) is not None:
            context["admin_address"] = admin_address(request, obj)
            context["is_invitable"] = not obj.is_down and not has_admin(obj)
        return super().render_change_form(request, context, *args, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Tenant | None = None) -> Any:
        return (*self.readonly_fields, "slug") if obj else self.readonly_fields

    def has_restore_permission(self, request: HttpRequest) -> bool:
        """Whether the user may have tenants deleted, and cancel it."""
        return request.user.has_perm("tenants.delete_tenant")

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:
        if change:
            # The owner's process writes the rest of a registration.
            own = [name for name in form.changed_data if name not in LIMIT_FIELDS]
            obj.save(update_fields=own)
            save_limits(form)
        else:
            super().save_model(request, obj, form, change)
            Domain.objects.create(tenant=obj, domain=form.cleaned_data["domain"])
            self.message_user(
                request,
                gettext(
                    "%(tenant)s is registered, and is being set up: it will be served in a moment,"
                    " if manage.py owner_worker runs. If not, manage.py create_tenant %(tenant)s"
                    " does it."
                )
                % {"tenant": obj},
                messages.WARNING,
            )

    def response_add(
        self, request: HttpRequest, obj: Tenant, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Redirect to the invitation of the first admin."""
        page = reverse("admin:invite_admin", args=[obj.pk])
        return redirect(f"{page}?{urlencode({'email': request.POST.get('email', '')})}")

    @display(description=_("Host names"))
    def host_names(self, obj: Tenant) -> str:
        return ", ".join(domain.domain for domain in obj.domains.all())

    @display(description=_("State"), label=base.BADGES)
    def condition(self, obj: Any) -> str:
        """The state; for a tenant without a schema, whether it can be set up."""
        if obj.is_down:
            return gettext("server is down")
        if obj.deletion_asked_at:
            return gettext("to be deleted")
        if obj.moving_to:
            return gettext("being moved")
        if obj.state != Tenant.State.PROVISIONING:
            return gettext(obj.state)
        return gettext("could not be set up") if obj.provisioning_error else gettext("being set up")

    @display(description=_("Schema"), label=base.BADGES)
    def schema(self, obj: Any) -> str:
        """Whether the schema has all migrations of this code."""
        if obj.migration_asked_at:
            return gettext("waits for the owner's worker")
        if obj.provisioning_error:
            return gettext("failed")
        if obj.state == Tenant.State.PROVISIONING:
            return gettext("being made")
        return gettext("up to date") if obj.fits else gettext("to be migrated")

    @display(description=_("Quotas reached"))
    def reached(self, obj: Tenant) -> str:
        """The limits that were reached at the last measurement."""
        reached = obj.usage.get("reached", {})
        return ", ".join(
            f"{quota.label}: {_LEVELS[reached[quota.value]['level']]}"
            for quota in Quota
            if quota.value in reached
        )

    @display(description=_("Jobs waiting"))
    def waiting(self, obj: Any) -> str:
        """The number of waiting jobs, and since when the oldest is due."""
        waiting, oldest = base.format_number(obj.backlog.waiting), obj.backlog.oldest
        if not oldest:
            return waiting
        return waiting + gettext(", the oldest %(timesince)s") % {"timesince": timesince(oldest)}

    @display(description=_("Given up"))
    def failed(self, obj: Any) -> str:
        """The number of failed jobs."""
        return base.format_number(obj.backlog.failed)

    @action(description=_("Suspend: stop serving"), permissions=["change"])
    def suspend(self, request: HttpRequest, queryset: QuerySet[Tenant]) -> None:
        done = gettext("%(tenant)s is suspended.")
        self._change_each(request, queryset, provisioning.suspend_tenant, "suspend", done)

    @action(description=_("Resume: serve again"), permissions=["change"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Tenant]) -> None:
        done = gettext("%(tenant)s is served again.")
        self._change_each(request, queryset, provisioning.resume_tenant, "resume", done)

    @action(description=_("Restore: do not delete"), permissions=["restore"])
    def restore(self, request: HttpRequest, queryset: QuerySet[Tenant]) -> None:
        done = gettext("%(tenant)s is restored.")
        self._change_each(request, queryset, provisioning.restore_tenant, "restore", done)

    @action(description=_("Migrate again, or set up again"), permissions=["change"])
    def migrate_again(self, request: HttpRequest, queryset: QuerySet[Tenant]) -> None:
        done = gettext(
            "%(tenant)s will be migrated in a moment, if manage.py owner_worker runs. If"
            " not, manage.py migrate --schema %(tenant)s does it."
        )
        self._change_each(request, queryset, provisioning.request_migration, "edit", done)

    def _change_each(
        self,
        request: HttpRequest,
        tenants: QuerySet[Tenant],
        change: Callable[[Tenant], None],
        action: str,
        done: str,
    ) -> None:
        for tenant in tenants:
            if try_change(request, tenant, change, action=action):
                self.message_user(request, done % {"tenant": tenant})


class PersonAdmin(base.RecordedPeopleAdmin, OperatorAdmin):
    """Operators: who may log in to this site."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


class TeamAdmin(GroupAdmin, OperatorAdmin):  # type: ignore[misc]  # unfold has no types
    """Groups with their permissions."""


class OperatorEventAdmin(base.EventColumns, OperatorAdmin):
    """Actions of operators, and failed logins."""

    refused = base.READ_ONLY
    actions = None
    list_display = ("created_at", "actor", "action", "subject_label", "name", "changed", "address")
    list_filter = ("action", "actor_kind", "created_at")
    search_fields = ("=actor", "=name", "=subject_id", "=address")
    search_help_text = _("The name of the actor, the name or id of the object, or an address.")
    fields = (
        *("created_at", "actor", "actor_kind", "actor_id", "address", "action"),
        *("subject_label", "name", "subject_id", "detail"),
    )
    show_full_result_count = False


sites.operator_site.recorder = operator_log.record_site_action
sites.operator_site.register(Tenant, TenantAdmin)
sites.operator_site.register(OperatorEvent, OperatorEventAdmin)
sites.operator_site.register(User, PersonAdmin)
sites.operator_site.register(Group, TeamAdmin)
