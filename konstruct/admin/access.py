"""The access log of the admin: the base of model pages, and functions for other pages."""

from functools import partial
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.db.models import Model, OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.lists import LONG_IDS, BoundedPaginator, id_column, person
from konstruct.admin.pages import as_uuid
from konstruct.api.auth.keys import owns_proposal
from konstruct.api.http.problems import current_request_id
from konstruct.api.models import ApiKey
from konstruct.orchestrator.models import Agent
from memory.models import AuthorKind, PersonName
from memory.models.facts import Author
from tenants.admin.list_tools import ListToolsAdmin
from tenants.admin.sites import ReadOnlyModelAdmin, tenant_site
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import Action, ActorKind
from tenants.limits.quotas import QuotaExceeded


def actor_of(request: HttpRequest) -> Actor:
    """Return the person who sent the request, as an actor of the log."""
    user = request.user
    if not user.is_authenticated:
        return Actor(ActorKind.UNKNOWN, "", "")
    return Actor.person(user)


def author_of(request: HttpRequest) -> Author:
    """Return the person who sent the request, as the author of a change."""
    actor = actor_of(request)
    own = partial(owns_proposal, person_id=actor.id)
    return Author(AuthorKind.PERSON, actor.id, actor.name, owns_proposal=own)


def author_name(address: str) -> str:
    """Return the name of a member of the team or of an API key, from the address of an author."""
    kind, _, key = address.partition(":")
    rows: QuerySet[Any] | None = None
    if kind == AuthorKind.PERSON and key.isdigit():
        rows = get_user_model()._default_manager.filter(pk=key).values_list("username", flat=True)
    elif kind == AuthorKind.PROGRAM and as_uuid(key):
        rows = ApiKey.objects.filter(pk=key).values_list("name", flat=True)
    return (rows is not None and rows.first()) or address


def log_access(
    request: HttpRequest,
    action: Action,
    subject: str,
    *,
    by: Actor | None = None,
    **detail: Any,
) -> None:
    """Log an action on the current tenant, in the transaction of the change.

    Args:
        request: the request of the person.
        action: the action of the person.
        subject: the kind of thing that it was done with.
        by: the actor, if it is not the person who is logged in.
        detail: further arguments of `record_access`, such as `subject_id`, `agent_id`, `user_id`,
            `people`, `before` and `after`, and numbers.
    """
    record_access(
        action, subject, by=by or actor_of(request), request_id=current_request_id(), **detail
    )


def log_row_access(
    request: HttpRequest, action: Action, row: Model, subject: str = "", **detail: Any
) -> None:
    """Log an action on a row, with its agent and user.

    Args:
        request: the request of the person.
        action: the action of the person.
        row: the row; its primary key is the subject's id.
        subject: the kind of thing; by default the English name of the row's model.
        detail: further arguments of `log_access`.
    """
    defaults = {
        "subject_id": row.pk,
        "agent_id": row.pk if isinstance(row, Agent) else getattr(row, "agent_id", None),
        "user_id": getattr(row, "user_id", None),
    }
    log_access(request, action, subject or row._meta.verbose_name_raw, **{**defaults, **detail})


def log_list_access(
    request: HttpRequest, action: str, row: Model | None, subject: str, **detail: Any
) -> None:
    """Log an action on a row or on a list, with the user of its address."""
    if row is not None:
        log_row_access(request, Action(action), row, **detail)
    else:
        user_id = request.GET.get("user") or None
        log_access(request, Action(action), subject, user_id=user_id, **detail)


def log_site_access(
    request: HttpRequest, action: str, *, user: Any = None, username: str = "", **detail: Any
) -> None:
    """Log logins, logouts, changed passwords and refusals of the site."""
    by = Actor.person(user) if user is not None else actor_of(request)
    if by.kind == ActorKind.UNKNOWN and username:
        # What was typed is logged only if a member of the team has this name.
        members = get_user_model()._default_manager.filter(username=username)
        by = Actor(ActorKind.UNKNOWN, "", username if members.exists() else "")
    log_access(
        request,
        Action(action),
        "admin" if action != Action.EDIT else get_user_model()._meta.verbose_name_raw,
        by=by,
        subject_id=user.pk if action == Action.EDIT and user is not None else None,
        user_id=request.GET.get("user") or None,
        **detail,
    )


tenant_site.recorder = log_site_access


def newest_name() -> Subquery:
    """Return the newest name of the user of a row."""
    names = PersonName.objects.filter(user_id=OuterRef("user_id"))
    return Subquery(names.order_by("-first_seen", "name").values("name")[:1])


class AuditedAdmin(ListToolsAdmin):
    """The pages of a model. The access log keeps every request."""

    log_list = "audit_accessevent"
    paginator = BoundedPaginator
    show_full_result_count = False
    # Rendering rows takes most of the time of a list: 2 ms each.
    list_per_page = 25

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the form, or the reason why the tenant's quota refuses it."""
        try:
            response: HttpResponse = super().changeform_view(request, *args, **kwargs)
        except QuotaExceeded as refusal:
            messages.error(request, str(refusal))
            return redirect(request.path)
        return response

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add `person_name`, the newest name of the user of a row."""
        rows: QuerySet[Any] = super().get_queryset(request)
        if not any(field.name == "user_id" for field in self.opts.concrete_fields):
            return rows
        return rows.annotate(person_name=newest_name())

    def get_list_display(self, request: HttpRequest) -> Any:
        """Cut long ids. The first column is a link, which has no room for a button."""
        first, *others = super().get_list_display(request)
        return (first, *(id_column(column) if column in LONG_IDS else column for column in others))

    def export_columns(self, request: HttpRequest) -> dict[str, Any]:
        """Return the columns of an export, with the name that the list shows for a user's id."""
        columns = super().export_columns(request)
        return columns | ({"person_name": "person_name"} if "user_id" in columns else {})

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Whether the user may run actions: the permission to change rows, also read-only ones."""
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    def record_list(self, request: HttpRequest, action: str, rows: Any, **detail: Any) -> None:
        """Log that rows were listed or searched, with the people in them."""
        people = [row.user_id for row in rows if getattr(row, "user_id", None)]
        self.record(request, action, people=people, **detail)

    def record(
        self, request: HttpRequest, action: str, row: Model | None = None, **detail: Any
    ) -> None:
        """Log an action on a row, or on the list."""
        log_list_access(request, action, row, self.opts.verbose_name_raw, **detail)


class AuditedReadOnlyAdmin(AuditedAdmin, ReadOnlyModelAdmin):
    """Read-only rows, and a record of who reads them."""

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Return the fields; the page of a row names its person."""
        fields = super().get_fields(request, obj)
        return [person if obj and name == "user_id" else name for name in fields]


class AgentNameAdmin(AuditedAdmin):
    """Rows with an agent's id: the name of the agent is read in the same query."""

    agent_columns: ClassVar[dict[str, str]] = {"agent_name": "agent_id"}
    """Columns with an agent's id, by the annotations that hold the names."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        names = {
            name: Subquery(Agent.objects.filter(pk=OuterRef(column)).values("name")[:1])
            for name, column in self.agent_columns.items()
        }
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.annotate(**names)

    @display(description=_("Agent"))
    def agent(self, row: Any) -> str:
        """The agent's name, or its id if there is no such agent any more."""
        return row.agent_name or str(row.agent_id or gettext("all agents"))


class AgentRowsAdmin(AgentNameAdmin, AuditedReadOnlyAdmin):
    """Read-only rows of an agent, by default the newest first."""

    ordering: Any = ("-created_at", "id")
