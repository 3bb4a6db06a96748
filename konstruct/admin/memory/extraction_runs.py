"""Extraction runs: proposals of a language model, previews with another one, and rollback."""

from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _

from konstruct.admin.access import RowPageAdmin, author_name, author_of, log_row_access
from konstruct.admin.lists import AgentFilter, UserFilter
from konstruct.admin.pages import PageForm, show_outcome
from konstruct.orchestrator.extraction import runs
from konstruct.orchestrator.models import ExtractionRun
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action

RUN: Final = "admin:orchestrator_extractionrun_change"
PREVIEW: Final = "orchestrator.add_extractionrun"
CHANGE: Final = "orchestrator.change_extractionrun"
MAX_REPLAYS: Final = 20


class ReplayForm(PageForm):
    """The language model of a further preview."""

    model = forms.CharField(
        required=False,
        max_length=200,
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "placeholder": _("The agent's model")}
        ),
    )


@admin.register(ExtractionRun, site=tenant_site)
class ExtractionRunAdmin(RowPageAdmin):
    """Requests for the facts of a part of a conversation."""

    list_display = (
        *("created_at", "state", "agent", "user_id", "model", "prompt_tokens"),
        *("completion_tokens", "cost", "error"),
    )
    list_filter = ("state", AgentFilter, UserFilter, "created_at")
    search_fields = ("=user_id", "=thread_id")
    template = "konstruct/extraction_run.html"
    title = _("Extraction run")

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return a run with its candidates, compared with a preview of the same messages."""
        first = row.replay_of or row.pk
        same_input = ExtractionRun.objects.filter(user_id=row.user_id, agent_id=row.agent_id)
        same_input = same_input.filter(Q(pk=first) | Q(replay_of=first)).exclude(pk=row.pk)
        related = same_input.order_by("-created_at")[:MAX_REPLAYS]
        chosen = request.GET.get("with")
        other = next((run for run in related if str(run.pk) == chosen), None)
        return {
            "run": row,
            "requester": author_name(row.requested_by),
            "related": related,
            "other": other,
            "compared": runs.compare(row, other) if other else None,
            "form": ReplayForm(),
            "is_fullwidth": 1,
        }


@tenant_site.post_page("extraction-runs/<uuid:run_id>/replay/", permission=PREVIEW)
def replay_extraction_run(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """Preview the messages of a run again, with another language model."""
    form = ReplayForm(request.POST)
    get_object_or_404(ExtractionRun.objects.defer("output", "candidates"), pk=run_id)
    if not form.is_valid():
        messages.warning(request, gettext("This is not the name of a model."))
        return redirect(RUN, run_id)
    with show_outcome(request, gettext("This is a preview: no fact has changed.")):
        preview = runs.replay(
            run_id,
            requested_by=author_of(request).address,
            model=form.cleaned_data["model"] or None,
        )
        log_row_access(request, Action.CREATE, preview, after=row_state(preview))
        return redirect(reverse(RUN, args=[preview.pk], query={"with": run_id}))
    return redirect(RUN, run_id)


@tenant_site.post_page("extraction-runs/<uuid:run_id>/apply/", permission=CHANGE)
def apply_extraction_run(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """Record the facts of a preview."""
    run = get_object_or_404(ExtractionRun, pk=run_id)
    with show_outcome(request, gettext("Applied.")), transaction.atomic():
        _note_decision(request, run, runs.apply(run_id), "apply")
    return redirect(RUN, run_id)


@tenant_site.page("extraction-runs/<uuid:run_id>/roll-back/", permission=CHANGE)
def roll_back_extraction_run(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """Undo a run, after a page that lists the facts that would change."""
    run = get_object_or_404(ExtractionRun, pk=run_id)
    if request.method != "POST":
        with show_outcome(request):
            found = runs.preview_roll_back(run_id, author=author_of(request))
            log_row_access(request, Action.VIEW, run)
            return tenant_site.render(
                request,
                "konstruct/roll_back_run.html",
                title=gettext("Roll back an extraction run"),
                run=run,
                groups=[
                    (gettext("Removed"), found["removed"]),
                    (gettext("Restored"), found["restored"]),
                    (gettext("Kept"), found["kept"]),
                ],
            )
        return redirect(RUN, run_id)
    with show_outcome(request), transaction.atomic():
        counts = runs.roll_back(run_id, author=author_of(request))
        _note_decision(request, run, runs.get_run(run_id), "roll_back")
        text = gettext(
            "Rolled back. Facts: %(removed)s removed, %(restored)s restored, %(kept)s kept."
        )
        messages.success(request, text % {"removed": 0, "restored": 0, "kept": 0, **counts})
    return redirect(RUN, run_id)


def _note_decision(
    request: HttpRequest, run: ExtractionRun, now: ExtractionRun, decision: str
) -> None:
    before, after = row_state(run), row_state(now)
    log_row_access(request, Action.DECIDE, now, before=before, after=after, decision=decision)
