"""Every page writes down who looked: the base of model pages, and a function for the others."""

from typing import Any
from uuid import UUID

from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from unfold.admin import ModelAdmin

from konstruct.admin.lists import BoundedPaginator
from konstruct.api.request_id import current_request_id
from konstruct.audit.access_log import Actor, record_access
from konstruct.audit.models import AccessEvent, Action
from tenants.sites import ReadOnlyModelAdmin


def actor_of(request: HttpRequest) -> Actor:
    """Who sent the request."""
    return Actor.person(request.user)


def note(
    request: HttpRequest,
    action: Action,
    subject: str,
    *,
    subject_id: object = "",
    agent_id: UUID | None = None,
    user_id: str | None = None,
    **detail: Any,
) -> AccessEvent:
    """Write down what the person is about to see, or to do."""
    return record_access(
        action,
        subject,
        by=actor_of(request),
        subject_id=subject_id,
        agent_id=agent_id,
        user_id=user_id,
        request_id=current_request_id(),
        **detail,
    )


class AuditedAdmin(ModelAdmin):
    """A model's pages, each of which leaves an entry in the access log."""

    paginator = BoundedPaginator
    show_full_result_count = False
    # Rendering rows is most of what a list takes: 2 ms each.
    list_per_page = 25

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """List, or search."""
        if request.method == "GET":
            searched = bool(request.GET.get("q"))
            note(
                request,
                Action.SEARCH if searched else Action.LIST,
                self._subject(),
                address=request.GET.urlencode(),
            )
        response: HttpResponse = super().changelist_view(request, extra_context)
        return response

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Model | None:
        """Find the row, and write down that it was looked at."""
        found: Model | None = super().get_object(request, object_id, from_field)
        if found is not None and request.method == "GET":
            note(
                request,
                Action.VIEW,
                self._subject(),
                subject_id=found.pk,
                agent_id=getattr(found, "agent_id", None),
                user_id=getattr(found, "user_id", None),
            )
        return found

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self._note_edit(request, obj)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self._note_edit(request, obj)
        return super().log_change(request, obj, message)

    def _note_edit(self, request: HttpRequest, obj: Model) -> None:
        """In the transaction of the form."""
        note(request, Action.EDIT, self._subject(), subject_id=obj.pk)

    def _subject(self) -> str:
        return str(self.opts.verbose_name)


class AuditedReadOnlyAdmin(AuditedAdmin, ReadOnlyModelAdmin):
    """Rows to look at, and to be seen looking at."""
