"""Extraction runs: proposals of a language model, previews with another one, and rollback."""

from typing import Final
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import AgentRowsAdmin, author_name, author_of, log_row_access
from konstruct.admin.lists import AgentFilter, UserFilter, agent_names, link
from konstruct.admin.pages import PageForm, show_outcome
from konstruct.orchestrator.extraction import runs
from konstruct.orchestrator.models import ExtractionRun
from memory.browse.people import displayed_names
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action

VIEW: Final = "orchestrator.view_extractionrun"
PREVIEW: Final = "orchestrator.add_extractionrun"
CHANGE: Final = "orchestrator.change_extractionrun"
MAX_REPLAYS: Final = 20


@admin.register(ExtractionRun, site=tenant_site)
class ExtractionRunAdmin(AgentRowsAdmin):
    """Requests for the facts of a part of a conversation."""

    list_display = (
        "created_at", "state", "agent", "user_id", "model", "prompt_tokens", "completion_tokens",
        "cost", "error", "page_link",
    )  # fmt: skip
    list_filter = ("state", AgentFilter, UserFilter, "created_at")
    search_fields = ("=user_id", "=thread_id")
    fields = (
        *("page_link", "state", "agent", "user_id", "thread_id", "message_ids", "replay_of"),
        *("requester", "model", "endpoint", "response_format", "prompt_digest"),
        *("prompt_tokens", "completion_tokens", "cost", "result", "candidates", "output"),
        *("error", "created_at", "ended_at"),
    )

    @display(description=_("Candidates"))
    def page_link(self, run: ExtractionRun) -> SafeString:
        """A link to the page of the run."""
        return link(gettext("Open"), "extraction_run", run.pk)

    @display(description=_("requested by"))
    def requester(self, run: ExtractionRun) -> str:
        """The name of the person or the key that requested the run."""
        return author_name(run.requested_by)


class ReplayForm(PageForm):
    """The language model of a further preview."""

    model = forms.CharField(
        required=False,
        max_length=200,
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "placeholder": _("The agent's model")}
        ),
    )


@tenant_site.page("extraction-runs/<uuid:run_id>/", name="extraction_run", permission=VIEW)
def extraction_run(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """Show a run with its candidates; compare it with a preview of the same messages."""
    run = get_object_or_404(ExtractionRun, pk=run_id)
    log_row_access(request, Action.VIEW, run)
    first = run.replay_of or run.pk
    same_input = ExtractionRun.objects.filter(user_id=run.user_id, agent_id=run.agent_id)
    related = [
        *same_input.filter(pk=first).exclude(pk=run.pk),
        *same_input.filter(replay_of=first)
        .exclude(pk=run.pk)
        .order_by("-created_at")[:MAX_REPLAYS],
    ]
    other = next(
        (candidate for candidate in related if str(candidate.pk) == request.GET.get("with")), None
    )
    return tenant_site.render(
        request,
        "konstruct/extraction_run.html",
        title=gettext("Extraction run"),
        run=run,
        requester=author_name(run.requested_by),
        person=displayed_names([run.user_id]).get(run.user_id, ""),
        agent=agent_names().get(run.agent_id, str(run.agent_id)),
        related=related,
        other=other,
        compared=runs.compare(run, other) if other else None,
        form=ReplayForm(),
        is_fullwidth=1,
    )


@tenant_site.post_page(
    "extraction-runs/<uuid:run_id>/replay/", name="replay_extraction_run", permission=PREVIEW
)
def replay(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """Preview the messages of a run again, with another language model."""
    form = ReplayForm(request.POST)
    get_object_or_404(ExtractionRun.objects.defer("output", "candidates"), pk=run_id)
    if not form.is_valid():
        messages.warning(request, gettext("This is not the name of a model."))
        return redirect("admin:extraction_run", run_id)
    with show_outcome(request, gettext("This is a preview: no fact has changed.")):
        preview = runs.replay(
            run_id,
            requested_by=author_of(request).address,
            model=form.cleaned_data["model"] or None,
        )
        log_row_access(request, Action.CREATE, preview, after=row_state(preview))
        return redirect(reverse("admin:extraction_run", args=[preview.pk], query={"with": run_id}))
    return redirect("admin:extraction_run", run_id)


@tenant_site.post_page(
    "extraction-runs/<uuid:run_id>/apply/", name="apply_extraction_run", permission=CHANGE
)
def apply(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """Record the facts of a preview."""
    run = get_object_or_404(ExtractionRun, pk=run_id)
    with show_outcome(request, gettext("Applied.")), transaction.atomic():
        _note_decision(request, run, runs.apply(run_id), "apply")
    return redirect("admin:extraction_run", run_id)


@tenant_site.page(
    "extraction-runs/<uuid:run_id>/roll-back/", name="roll_back_extraction_run", permission=CHANGE
)
def roll_back(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
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
        return redirect("admin:extraction_run", run_id)
    with show_outcome(request), transaction.atomic():
        counts = runs.roll_back(run_id, author=author_of(request))
        _note_decision(request, run, runs.get_run(run_id), "roll_back")
        text = gettext(
            "Rolled back. Facts: %(removed)s removed, %(restored)s restored, %(kept)s kept."
        )
        messages.success(request, text % {"removed": 0, "restored": 0, "kept": 0, **counts})
    return redirect("admin:extraction_run", run_id)


def _note_decision(
    request: HttpRequest, run: ExtractionRun, now: ExtractionRun, decision: str
) -> None:
    before, after = row_state(run), row_state(now)
    log_row_access(request, Action.DECIDE, now, before=before, after=after, decision=decision)
