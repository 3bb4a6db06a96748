"""The access log of the admin: the base of model pages, and functions for other pages."""

from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from konstruct.admin.lists import BoundedPaginator, agent, with_agent_name
from konstruct.api.http.problems import current_request_id
from konstruct.orchestrator.models import Agent
from tenants.admin.recorded import RecordedAdmin
from tenants.admin.sites import ReadOnlyModelAdmin, tenant_site
from tenants.audit.access_log import Actor, record_access
from tenants.audit.changes import RowState
from tenants.audit.models import Action, ActorKind


def actor_of(request: HttpRequest) -> Actor:
    """Return the person who sent the request, as an actor of the log."""
    user = request.user
    if not user.is_authenticated:
        return Actor(ActorKind.UNKNOWN, "", "")
    return Actor.person(user)


def note(
    request: HttpRequest,
    action: Action,
    subject: str,
    *,
    subject_id: object = "",
    agent_id: UUID | None = None,
    user_id: str | None = None,
    before: RowState | None = None,
    after: RowState | None = None,
    **detail: Any,
) -> None:
    """Log an action of the person, in the transaction of the change."""
    record_access(
        action,
        subject,
        by=actor_of(request),
        subject_id=subject_id,
        agent_id=agent_id,
        user_id=user_id,
        request_id=current_request_id(),
        before=before,
        after=after,
        **detail,
    )


def note_row(request: HttpRequest, action: Action, row: Model, **detail: Any) -> None:
    """Log an action on a row, with its agent and user."""
    note(
        request,
        action,
        str(row._meta.verbose_name),
        subject_id=row.pk,
        agent_id=row.pk if isinstance(row, Agent) else getattr(row, "agent_id", None),
        user_id=getattr(row, "user_id", None),
        **detail,
    )


def note_on_site(
    request: HttpRequest, action: str, *, user: Any = None, username: str = "", **detail: Any
) -> None:
    """Log logins, logouts, changed passwords and refusals of the site."""
    by = Actor.person(user) if user is not None else actor_of(request)
    if by.kind == ActorKind.UNKNOWN:
        by = Actor(ActorKind.UNKNOWN, "", username)
    record_access(
        Action(action),
        "admin" if action != Action.EDIT else str(get_user_model()._meta.verbose_name),
        by=by,
        subject_id=by.id if action == Action.EDIT else "",
        user_id=detail.get("asked", {}).get("user") or None,
        request_id=current_request_id(),
        **detail,
    )


tenant_site.recorder = note_on_site


class AuditedAdmin(RecordedAdmin):
    """The pages of a model. The access log keeps every request."""

    paginator = BoundedPaginator
    show_full_result_count = False
    # Rendering rows is most of what a list takes: 2 ms each.
    list_per_page = 25

    def record(
        self, request: HttpRequest, action: str, row: Model | None = None, **detail: Any
    ) -> None:
        """Log an action on a row, or on the list."""
        if row is not None:
            note_row(request, Action(action), row, **detail)
        else:
            user_id = request.GET.get("user") or None
            subject = str(self.opts.verbose_name)
            note(request, Action(action), subject, user_id=user_id, **detail)


class AuditedReadOnlyAdmin(AuditedAdmin, ReadOnlyModelAdmin):
    """Read-only rows, and a record of who reads them."""


class AgentRowsAdmin(AuditedReadOnlyAdmin):
    """Rows of an agent: its name is read in the same query."""

    agent = staticmethod(agent)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_agent_name(super().get_queryset(request))
