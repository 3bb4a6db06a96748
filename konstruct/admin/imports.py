"""Files of history that are imported, and files with all data of a person."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import display_for_field, display_for_value
from django.db.models import ForeignKey, JSONField, Model, UUIDField
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import http, timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext, gettext_lazy as _
from unfold.widgets import UnfoldAdminFileFieldWidget

from konstruct.admin import pages
from konstruct.admin.access import RowPageAdmin, actor_of, log_access, log_row_access
from konstruct.orchestrator.history_import import chats, importing
from konstruct.orchestrator.history_import.importing import FORMATS, Options, pairs_of
from konstruct.orchestrator.identities import channel_identities, person_export
from konstruct.orchestrator.models import HISTORY_IMPORTS, HistoryImport
from konstruct.templatetags.texts import translated
from memory.facts.rows import events_by_version
from memory.models import MemoryEntry, Message
from tenants import transaction
from tenants.admin import exports, sites
from tenants.audit.changes import row_state
from tenants.audit.models import Action

IMPORT: Final = "orchestrator.add_historyimport"
IMPORT_PAGE: Final = "admin:orchestrator_historyimport_change"


def _lines_field(label: Any, help_text: Any) -> forms.CharField:
    widget = forms.Textarea(attrs={"rows": 3})
    return forms.CharField(label=label, required=False, help_text=help_text, widget=widget)


def _choices(names: Iterable[str]) -> list[tuple[str, Any]]:
    return [("", _("recognized")), *((name, name) for name in names)]


class ImportForm(pages.PageForm):
    """A file, how it is read, and who is who in it."""

    file = forms.FileField(
        label=_("File"),
        # Unfold's script writes the name of the file into the text field of this widget.
        widget=UnfoldAdminFileFieldWidget,
        help_text=_("The export of another system, best as zip: at most 2.4 MB."),
    )
    agent = pages.AgentField(_("none: the file has facts of all agents"))
    people = _lines_field(
        _("People"), _("A line for each person: the name in the file = the user’s id.")
    )
    agent_names = _lines_field(
        _("Names of the agent"), _("A line for each name that the agent has in the file.")
    )
    user_id = pages.UserField(
        help_text=_("The user of texts whose user is not named, as in a chat with ChatGPT.")
    )
    time_zone = forms.CharField(
        label=_("Time zone"),
        required=False,
        help_text=_("Of times without a zone, such as Europe/Berlin."),
    )
    format = forms.ChoiceField(label=_("Format"), required=False, choices=_choices(FORMATS))
    date_order = forms.ChoiceField(
        label=_("Order of dates"), required=False, choices=_choices(chats.ORDERS)
    )
    thread_id = forms.CharField(
        label=_("Thread"),
        required=False,
        help_text=_("Id of the conversation, if the file has one without an id."),
    )
    columns = _lines_field(
        _("Columns of CSV"), _("A line for each, such as text=Nachricht or time=Datum.")
    )


@sites.tenant_site.page("imports/", permission=IMPORT, title=_("Import history"))
def import_history(request: HttpRequest) -> sites.Content:
    """Take a file, and preview it; with `like`, with the entries of an earlier import."""
    like = pages.as_uuid(request.GET.get("like"))
    earlier = HistoryImport.objects.defer("content").filter(pk=like).first() if like else None
    entered: dict[str, Any] = {}
    if earlier and request.method != "POST":
        log_row_access(request, Action.VIEW, earlier)
        for name, value in earlier.options.items():
            lines = map("=".join, value.items()) if isinstance(value, dict) else value
            entered[name] = lines if isinstance(lines, str) else "\n".join(lines)
    form = ImportForm(request.POST or None, request.FILES or None, initial=entered)
    if request.method == "POST" and form.is_valid():
        options = dict(form.cleaned_data)
        file, agent_id = options.pop("file"), options.pop("agent")
        with pages.show_outcome(request, form=form), transaction.atomic():
            options |= {
                "agent": str(agent_id or ""),
                "user_id": options["user_id"] or "",
                "people": pairs_of(options["people"].splitlines()),
                "agent_names": list(map(str.strip, options["agent_names"].splitlines())),
                "columns": pairs_of(options["columns"].splitlines()),
            }
            upload = importing.request_import(
                file.read(), file.name, Options(**options), by=actor_of(request), is_dry_run=True
            )
            log_row_access(request, Action.CREATE, upload, after=row_state(upload))
            return redirect(IMPORT_PAGE, upload.pk)
    return {"form": form}


@sites.tenant_site.post_page("imports/<uuid:import_id>/confirm/", permission=IMPORT)
def confirm_import(request: HttpRequest, import_id: UUID) -> HttpResponseBase:
    """Import a file after its preview."""
    upload = get_object_or_404(HistoryImport.objects.defer("content"), pk=import_id)
    with pages.show_outcome(request), transaction.atomic():
        importing.confirm(import_id)
        log_row_access(request, Action.IMPORT, upload)
    return redirect(IMPORT_PAGE, import_id)


@admin.register(HistoryImport, site=sites.tenant_site)
class HistoryImportAdmin(RowPageAdmin):
    """Files with history that were sent in the last day."""

    agent_columns = {}
    list_display = (
        *("file_name", "requested_by", "is_dry_run", "created_at", "finished_at"),
        pages.error,
    )
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


@sites.tenant_site.page("people/person/export/", permission="audit.export_person")
def export_person(request: HttpRequest) -> HttpResponseBase:
    """Send all data of a person, with all their ids: as JSON, or as a page to print."""
    user_id = pages.as_user_id(request.GET.get("user"))
    user_ids = channel_identities.linked_ids(user_id)
    if request.method != "POST" or not user_id or not channel_identities.is_known(user_ids):
        return redirect(reverse("admin:person", query={"user": user_id}))
    as_page = request.POST.get("as") == "page"
    kind = "html" if as_page else "json"
    log_access(request, Action.EXPORT, "person", user_id=user_id, format=kind)
    exported = PersonPage(user_ids, pages.agent_names())
    if as_page:
        tenant = request.tenant  # type: ignore[attr-defined]  # set by TenantMiddleware
        return HttpResponse(
            exported.as_page(tenant=tenant, user_ids=user_ids, made_at=timezone.now())
        )
    disposition = http.content_disposition_header(True, f"{user_id[:80]}.json")
    return exports.streamed(
        request,
        exported.as_json(),
        content_type="application/json",
        headers={"Content-Disposition": disposition or "attachment"},
    )


# The page leaves out these kinds, which repeat messages, and columns about how memory works.
NOT_ON_PAGE: Final = ("memory_conversationembedding", "memory_scope")
TECHNICAL: Final = (
    *("hits", "cut", "injected", "prompt", "embedding_model", "number", "message_ids", "folded"),
    *("valid_from_precision", "valid_to_precision", "milliseconds", "author_id", "start", "end"),
    "erasures",
)
# The text of a row in the page, by the first of these columns that it has.
TEXTS: Final = ("content", "quote", "name", "query", "question", "reason")
# Columns with words in English, which the page translates.
TRANSLATED: Final = ("review_reason", "reason", "subject")
TITLES: Final = {"recent_turns": _("Recent turns"), "sessions": _("Sessions")}
_LABELS: Final = {"agent": _("agent"), "at": _("created at"), "unreadable": _("Not readable")}
TURN_LABELS: Final = {field.attname: field.verbose_name for field in Message._meta.fields} | _LABELS


class PersonPage(person_export.PersonExport):
    """All data of a person, as a page.

    Args:
        user_ids: all ids of the person.
        agents: the names of all agents.
    """

    def __init__(self, user_ids: Sequence[str], agents: dict[UUID, str]) -> None:
        super().__init__(user_ids, agents)
        self._facts: dict[UUID, str] = {}
        self._versions_of_events: dict[UUID, UUID] = {}

    def as_page(self, **context: Any) -> str:
        """Return a page. Ids of rows are left out, as are empty values.

        Args:
            context: values of person_export.html.
        """
        facts = MemoryEntry.objects.filter(user_id__in=self.user_ids)
        for version_id, events in events_by_version(facts).items():
            self._versions_of_events |= dict.fromkeys((event.pk for event in events), version_id)
        sections: list[tuple[Any, list[Any]]] = []
        for table, model in person_export.exported_models().items():
            if table not in NOT_ON_PAGE:
                labels = {field.attname: field.verbose_name for field in model._meta.fields}
                texts = (self._as_text(model, row) for row in self.rows_of(model))
                printed = [_printed_row(text, labels) for text in texts]
                sections.append((model._meta.verbose_name_plural, printed))
        for name, rows in self.rows_without_model():
            printed = [_printed_row(_turn_as_text(row), TURN_LABELS) for row in rows]
            sections.append((TITLES[name], printed))
        return render_to_string("konstruct/person_export.html", {**context, "sections": sections})

    def _as_text(self, model: type[Model], row: dict[str, Any]) -> dict[str, Any]:
        """Return the values of a row as people read them, without the ids of rows."""
        texts = {}
        for name, value in row.items():
            field: Any = model._meta.get_field(name)
            if field.attname == "memory_id" and not field.primary_key:
                # An event has the text of its time.
                version_id = self._versions_of_events.get(row["id"], value)
                text: Any = self._facts.get(version_id, "")
            elif name == "agent_id":
                text = self.agents.get(value, "")
            elif is_internal(field):
                text = ""
            elif name in TRANSLATED:
                text = translated(value)
            elif isinstance(value, bool):
                text = gettext("Yes") if value else gettext("No")
            elif isinstance(field, JSONField):
                text = json.dumps(value, ensure_ascii=False) if value else ""
            else:
                text = display_for_field(value, field, "")
            texts[name] = text
        if "memory_id" in row and "content" in row:
            self._facts[row["memory_id"]] = row["content"]
        return texts


def is_internal(field: Any) -> bool:
    is_key = field.primary_key or isinstance(field, UUIDField | ForeignKey)
    return is_key or field.name in TECHNICAL


def _turn_as_text(turn: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a turn as people read them, without the id of its message."""
    texts = {**turn, "message_id": "", "role": gettext(turn.get("role", ""))}
    if turn.get("at"):
        texts["at"] = display_for_value(datetime.fromisoformat(turn["at"]), "")
    return texts


def _printed_row(row: Mapping[str, Any], labels: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """Return the text of a row, and its other values with their labels."""
    shown = {name: value for name, value in row.items() if value not in (None, "", [], {})}
    text = shown.pop(next((name for name in TEXTS if name in shown), ""), "")
    return text, [(labels.get(name, name), value) for name, value in shown.items()]
