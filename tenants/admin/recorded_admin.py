"""The base of a model's pages in both admins. It records what they show and change."""

from datetime import datetime
from typing import Any

from django.apps import apps
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Permission
from django.core.exceptions import ValidationError
from django.db import DataError
from django.db.models import Model, QuerySet, UUIDField
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext
from unfold.admin import ModelAdmin

from tenants import transaction
from tenants.admin.permissions import PermissionsField
from tenants.admin.row_forms import NewRowForm, lock_form, new_row_form, row_form
from tenants.admin.sites import ExtraContext
from tenants.audit.changes import NO_STATE, RowState, row_state


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
    change_form_before_template = "konstruct/form_state.html"
    counted: tuple[Any, Any] | None = None
    """What one row and many rows are called below the list, if not as their model."""
    actions_by_row: tuple[str, ...] = ()
    """Actions that call other servers, and so have a transaction for each row."""
    sent_twice: Any = ""
    """A sentence for the error of a form of a new row that is sent twice."""

    def record(
        self, request: HttpRequest, action: str, row: Model | None = None, **detail: Any
    ) -> None:
        """Log an action on a row, or on the list."""
        raise NotImplementedError

    def last_change(self, row: Any) -> tuple[str, datetime] | None:
        """Return who changed a row last, by the log, and when; None if that is not known."""
        raise NotImplementedError

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
            self.record(request, action, asked=request.GET.dict())
        return response

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        """Return the form, which refuses a lost update, or a second row of one form."""
        base: Any = kwargs.get("form", self.form)
        if kwargs.get("change"):
            kwargs["form"] = row_form(base, self.last_change)
        elif isinstance(self.opts.pk, UUIDField):
            kwargs["form"] = new_row_form(base, self.model, str(self.sent_twice))
        return super().get_form(request, obj, **kwargs)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the form, with the buttons that apply."""
        form = context["adminform"].form
        context["row_version"] = getattr(form, "row_version", "")
        context["row_id"] = getattr(form, "row_id", "")
        if kwargs.get("add") and self.redirects_after_add:
            context |= {"show_save_and_add_another": False, "show_save_and_continue": False}
        response: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return response

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show or change a row."""
        return self.record_view(request, super().changeform_view(request, *args, **kwargs))

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Ask for confirmation, or delete a row."""
        return self.record_view(request, super().delete_view(request, *args, **kwargs))

    def history_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the history of a row."""
        return self.record_view(request, super().history_view(request, *args, **kwargs))

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Name permissions in the language of the reader."""
        if db_field.related_model is Permission:
            kwargs["form_class"] = PermissionsField
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """List the rows to be deleted, without rows of automatic many-to-many tables."""
        listed, counts, missing, protected = super().get_deleted_objects(objs, request)
        joining = [
            model._meta
            for model in apps.get_models(include_auto_created=True)
            if model._meta.auto_created
        ]
        names = tuple(f"{capfirst(options.verbose_name)}: " for options in joining)
        for options in joining:
            counts.pop(options.verbose_name_plural, None)
        return _without_prefixes(listed, names), counts, missing, protected

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Model | None:
        """Return the row; of a POST request, with the values before the change as `was`.

        A second POST request for the row waits for the first one, and sees what that has saved.
        """
        if request.method == "POST":
            lock_form(f"{self.opts.label_lower} {object_id}")
        found: Any = super().get_object(request, object_id, from_field)
        if found is None and self.has_view_or_change_permission(request):
            raise Http404(f"There is no {self.opts.verbose_name_raw} {object_id!r}.")
        if found is not None and request.method == "POST":
            found.was = self.state_of(found)
        row: Model | None = found
        return row

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Any:
        """Return the row that is to be saved; a new one has the id of its form."""
        row = super().save_form(request, form, change)
        if isinstance(form, NewRowForm):
            row.pk = form.row_id
        return row

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Do an action with the chosen rows, in one transaction; report missing rows."""
        chosen = set(request.POST.getlist(ACTION_CHECKBOX_NAME))
        if chosen and request.POST.get("select_across") != "1":
            missing = len(chosen) - _count(queryset, chosen)
            if missing:
                text = ngettext(
                    "%(missing)s chosen row is not there any more, or not in this list.",
                    "%(missing)s chosen rows are not there any more, or not in this list.",
                    missing,
                )
                self.message_user(request, text % {"missing": missing}, messages.WARNING)
            if missing == len(chosen):
                return redirect(request.get_full_path())
        if request.POST.get("action") in self.actions_by_row:
            return super().response_action(request, queryset)
        with transaction.atomic():
            return super().response_action(request, queryset)

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Log the addition, in the form's transaction after its relations are saved."""
        self.record(request, "create", obj, after=self.state_of(_reload(obj)))
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Log the change, in the form's transaction after its relations are saved."""
        was = getattr(obj, "was", NO_STATE)
        self.record(request, "edit", obj, before=was, after=self.state_of(_reload(obj)))
        return super().log_change(request, obj, message)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        """Delete a row, and log its values."""
        with transaction.atomic():
            self.record(request, "delete", obj, before=self.state_of(obj))
            self.remove(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete the selected rows, each with a log entry."""
        with transaction.atomic():
            for obj in queryset:
                self.delete_model(request, obj)

    def remove(self, obj: Model) -> None:
        """Delete a row. Subclasses call the service that the API calls, if there is one."""
        obj.delete()

    def record_view(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Record the row that the response is going to show."""
        context = getattr(response, "context_data", None) or {}
        shown = context.get("original") or context.get("object")
        if response.status_code == 200 and isinstance(shown, Model) and shown.pk is not None:
            self.record(request, "view", shown)
        return response


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


def _count(queryset: QuerySet[Any], keys: set[str]) -> int:
    """Return the number of rows with these keys; 0 if one of them is not a key of the model."""
    try:
        return queryset.filter(pk__in=keys).count()
    except (ValidationError, ValueError):
        return 0


def _without_prefixes(items: list[Any], prefixes: tuple[str, ...]) -> list[Any]:
    """Return the nested list without texts that begin with one of these prefixes."""
    return [
        _without_prefixes(item, prefixes) if isinstance(item, list) else item
        for item in items
        if isinstance(item, list) or not item.startswith(prefixes)
    ]


def _reload(row: Model) -> Model:
    """Return the row read again, with values that services and the database have set."""
    return type(row)._default_manager.get(pk=row.pk)
