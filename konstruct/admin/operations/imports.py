"""Import of history: a file is sent, its preview is shown, and then it is imported by a job."""

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext, gettext_lazy as _

from konstruct.admin.access import RowPageAdmin, actor_of, log_row_access
from konstruct.admin.pages import AgentField, PageForm, UserField, show_outcome
from konstruct.orchestrator.history_import.chats import ORDERS
from konstruct.orchestrator.history_import.importing import FORMATS, Options, pairs_of
from konstruct.orchestrator.history_import.uploads import confirm, request_import
from konstruct.orchestrator.models import HISTORY_IMPORTS, HistoryImport
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action

IMPORT: Final = "orchestrator.add_historyimport"
IMPORT_PAGE: Final = "admin:orchestrator_historyimport_change"


def _lines_field(label: Any, help_text: Any) -> forms.CharField:
    widget = forms.Textarea(attrs={"rows": 3})
    return forms.CharField(label=label, required=False, help_text=help_text, widget=widget)


def _choices(names: Iterable[str]) -> list[tuple[str, Any]]:
    return [("", _("recognized")), *((name, name) for name in names)]


class ImportForm(PageForm):
    """A file, how it is read, and who is who in it."""

    file = forms.FileField(
        label=_("File"),
        widget=forms.FileInput,
        help_text=_("The export of another system, best as zip: at most 2.4 MB."),
    )
    agent = AgentField(_("none: the file has facts of all agents"))
    people = _lines_field(
        _("People"), _("A line for each person: the name in the file = the user’s id.")
    )
    agent_names = _lines_field(
        _("Names of the agent"), _("A line for each name that the agent has in the file.")
    )
    user_id = UserField(
        help_text=_("The user of texts whose user is not named, as in a chat with ChatGPT.")
    )
    time_zone = forms.CharField(
        label=_("Time zone"),
        required=False,
        help_text=_("Of times without a zone, such as Europe/Berlin."),
    )
    format = forms.ChoiceField(label=_("Format"), required=False, choices=_choices(FORMATS))
    date_order = forms.ChoiceField(
        label=_("Order of dates"), required=False, choices=_choices(ORDERS)
    )
    thread_id = forms.CharField(
        label=_("Thread"),
        required=False,
        help_text=_("Id of the conversation, if the file has one without an id."),
    )
    columns = _lines_field(
        _("Columns of CSV"), _("A line for each, such as text=Nachricht or time=Datum.")
    )


@tenant_site.page("imports/", permission=IMPORT)
def import_history(request: HttpRequest) -> HttpResponseBase:
    """Take a file, and preview it."""
    form = ImportForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        options = dict(form.cleaned_data)
        file, agent_id = options.pop("file"), options.pop("agent")
        with show_outcome(request, form=form), transaction.atomic():
            options |= {
                "agent": str(agent_id or ""),
                "user_id": options["user_id"] or "",
                "people": pairs_of(options["people"].splitlines()),
                "agent_names": list(map(str.strip, options["agent_names"].splitlines())),
                "columns": pairs_of(options["columns"].splitlines()),
            }
            upload = request_import(
                file.read(), file.name, Options(**options), by=actor_of(request), is_dry_run=True
            )
            log_row_access(request, Action.CREATE, upload, after=row_state(upload))
            return redirect(IMPORT_PAGE, upload.pk)
    return tenant_site.render(
        request,
        "konstruct/import_history.html",
        title=gettext("Import history"),
        form=form,
    )


@tenant_site.post_page("imports/<uuid:import_id>/confirm/", permission=IMPORT)
def confirm_import(request: HttpRequest, import_id: UUID) -> HttpResponseBase:
    """Import a file after its preview."""
    upload = get_object_or_404(HistoryImport.objects.defer("content"), pk=import_id)
    with show_outcome(request), transaction.atomic():
        confirm(import_id)
        log_row_access(request, Action.IMPORT, upload)
    return redirect(IMPORT_PAGE, import_id)


@admin.register(HistoryImport, site=tenant_site)
class HistoryImportAdmin(RowPageAdmin):
    """Files with history that were sent in the last day."""

    agent_columns = {}
    list_display = ("file_name", "requested_by", "is_dry_run", "created_at", "finished_at", "error")
    list_filter = ("created_at",)
    template = "konstruct/history_import.html"
    title = _("History import")

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the imports without the files."""
        return super().get_queryset(request).defer("content")

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return an import with its report, and why it waits."""
        threads = [
            {**thread, **{end: parse_datetime(thread[end] or "") for end in ("first", "last")}}
            for thread in (row.report or {}).get("conversations", ())
        ]
        job = HISTORY_IMPORTS.jobs([row.pk]).first()
        return {"upload": row, "job": job, "threads": threads}
