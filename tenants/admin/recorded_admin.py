"""The base of a model's pages in both admins. It records what they show and change."""

from collections.abc import Iterable
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Permission
from django.core.exceptions import PermissionDenied
from django.db import DataError
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _
from unfold.admin import ModelAdmin

from tenants import transaction
from tenants.admin.sites import ExtraContext
from tenants.audit.changes import NO_STATE, RowState, row_state
from tenants.context import execute

# Permissions that Django creates for each model.
_OF_A_MODEL: Final = {
    "add": _("Can add %(models)s"),
    "change": _("Can change %(models)s"),
    "delete": _("Can delete %(models)s"),
    "view": _("Can view %(models)s"),
}


def permission_name(permission: Permission) -> str:
    """Return the text of a permission, such as "Can view messages"."""
    action, _separator, model_name = permission.codename.partition("_")
    model = permission.content_type.model_class()
    if model is not None and model_name == model._meta.model_name and action in _OF_A_MODEL:
        return str(_OF_A_MODEL[action]) % {"models": model._meta.verbose_name_plural}
    return gettext(permission.name)


class PermissionsField(forms.ModelMultipleChoiceField):
    """Permissions of a person or of a role."""

    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.content_type} | {permission_name(obj)}"


class DeclaredChangeList(ChangeList):
    """A list with the filters that it declares.

    Django takes any lookup of any column from the address, also of columns that no page shows.
    Other lookups and impossible values are not applied: Django shows the whole list, with a
    message.
    """

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(request, *args, **kwargs)
        except (IncorrectLookupParameters, DataError, OverflowError, ValueError) as error:
            text = gettext("This list has no such filter, or no such value of it: %(what)s")
            messages.warning(request, text % {"what": request.GET.urlencode()[:200]})
            raise IncorrectLookupParameters from error

    def get_filters(self, request: HttpRequest) -> Any:
        found = super().get_filters(request)
        if undeclared := found[2]:
            raise IncorrectLookupParameters(f"undeclared: {', '.join(undeclared)}")
        return found


class RecordedAdmin(ModelAdmin):
    """A model's pages. Each row that they show and each change is logged.

    A view is recorded when the response is a page with status 200. A change is recorded in its
    transaction, with the values before and after.
    """

    redirects_after_add = False
    """Whether saving a new row opens its page: then the form has one button to save it."""
    counted: tuple[Any, Any] | None = None
    """What one row and many rows are called below the list, if not as their model."""
    actions_by_row: tuple[str, ...] = ()
    """Actions that call other servers, and so have a transaction for each row."""
    log_list: str
    """The list of the log of the site."""

    def record(
        self, request: HttpRequest, action: str, row: Model | None = None, **detail: Any
    ) -> None:
        """Log an action on a row, or on the list."""
        raise NotImplementedError

    def record_list(
        self, request: HttpRequest, action: str, rows: Iterable[Any], **detail: Any
    ) -> None:
        """Log that rows were listed, searched or exported, with the filters."""
        self.record(request, action, asked=request.GET.dict(), **detail)

    def state_of(self, row: Model) -> RowState:
        """Return the values of a row for the log."""
        return row_state(row, many=True)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return DeclaredChangeList

    def changelist_view(
        self, request: HttpRequest, extra_context: ExtraContext = None
    ) -> HttpResponse:
        """Show the list, or search it."""
        response: HttpResponse = super().changelist_view(request, extra_context)
        if response.status_code == 200:
            action = "search" if request.GET.get("q") else "list"
            shown = (getattr(response, "context_data", None) or {}).get("cl")
            self.record_list(request, action, [] if shown is None else [*shown.result_list])
        return response

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the form, with the buttons that apply."""
        if kwargs.get("add") and self.redirects_after_add:
            context |= {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().render_change_form(request, context, *args, **kwargs)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show or change a row."""
        return self.record_view(request, super().changeform_view(request, *args, **kwargs))

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Ask for confirmation, or delete a row."""
        return self.record_view(request, super().delete_view(request, *args, **kwargs))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: ExtraContext = None
    ) -> HttpResponse:
        """Show the entries of the log about a row, in place of Django's second log."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        return redirect(reverse(f"admin:{self.log_list}_changelist", query={"q": object_id}))

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Name permissions in the language of the reader."""
        if db_field.related_model is Permission:
            kwargs["form_class"] = PermissionsField
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Model | None:
        """Return the row; of a POST request, with the values before the change as `was`.

        A second POST request for the row waits for the first one, and sees what that has saved.
        """
        if request.method == "POST":
            lock = f"form {self.opts.label_lower} {object_id}"
            execute("SELECT public.wait_for_tenant_lock(%s)", [lock])
        found: Any = super().get_object(request, object_id, from_field)
        if found is None and self.has_view_or_change_permission(request):
            raise Http404(f"There is no {self.opts.verbose_name_raw} {object_id!r}.")
        if found is not None and request.method == "POST":
            found.was = self.state_of(found)
        return found

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Do an action with the chosen rows, in one transaction."""
        if request.POST.get("action") in self.actions_by_row:
            return super().response_action(request, queryset)
        with transaction.atomic():
            return super().response_action(request, queryset)

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Log the addition, in the form's transaction after its relations are saved."""
        self.record(request, "create", obj, after=self.state_of(_reload(obj)))

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Log the change, in the form's transaction after its relations are saved."""
        was = getattr(obj, "was", NO_STATE)
        self.record(request, "edit", obj, before=was, after=self.state_of(_reload(obj)))

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Log each row, in the transaction of the form or of the action that deletes it."""
        for obj in queryset:
            self.record(request, "delete", obj, before=self.state_of(obj))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete each row as its form does, which calls a service in some subclasses."""
        for obj in queryset:
            self.delete_model(request, obj)

    def record_view(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Record the row that the response is going to show."""
        context = getattr(response, "context_data", None) or {}
        shown = context.get("original") or context.get("object")
        if response.status_code == 200 and isinstance(shown, Model) and shown.pk is not None:
            self.record(request, "view", shown)
        return response


class RecordedGroupAdmin(GroupAdmin):
    """Django's pages of groups. List it before RecordedAdmin among the base classes."""

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Name the groups alone: the rows of their permissions have no names for people."""
        return [str(group) for group in objs], {}, set(), []


class RecordedPeopleAdmin(UserAdmin):
    """Django's pages of users. List it before RecordedAdmin among the base classes."""

    record_view: Any

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        """Set a user's password, and log it in the same transaction."""
        with transaction.atomic():
            response: HttpResponse = super().user_change_password(request, id, form_url)
        return self.record_view(request, response)


def _reload(row: Model) -> Model:
    """Return the row read again, with values that services and the database have set."""
    return type(row)._default_manager.get(pk=row.pk)
