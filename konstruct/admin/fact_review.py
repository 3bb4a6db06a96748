"""The review of facts: the queue of proposed facts, decisions, and the runs that propose facts."""

from collections.abc import Collection
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import html, timezone
from django.utils.translation import gettext, gettext_lazy as _

from konstruct.admin import access, pages
from konstruct.orchestrator.extraction import runs
from konstruct.orchestrator.models import Agent, ExtractionRun
from konstruct.orchestrator.usage import admit_memories
from konstruct.templatetags.texts import shorten, translated
from memory.browse.lists import displayed_names, turns_around
from memory.browse.search import MessageFilter, search_messages
from memory.facts import LongTermMemory, confirm, reject, restore, retract
from memory.facts.rows import value_in, wrong_stems
from memory.models import AuthorKind, FactEvent, FactEvidence, FactState, MemoryEntry, Message
from memory.text.lexical import lexemes
from memory.text.sentences import sentence_spans
from tenants import transaction
from tenants.admin.sites import Content, tenant_site
from tenants.audit.models import Action
from tenants.context import required_tenant_id

REVIEW: Final = "memory.review_memoryentry"
# Turns of the conversation on either side of the quote.
TURNS_BEFORE, TURNS_AFTER = 3, 2
# Counting stops here; the page then shows "500+".
MAX_COUNT: Final = 500
# The choice of the form of exclusions for a whole message.
WHOLE_MESSAGE: Final = "whole"


def update_fact(request: HttpRequest, fact: MemoryEntry, **values: Any) -> MemoryEntry:
    """Change a fact as the person of the request. Takes the values of `LongTermMemory.update`."""
    author = access.author_of(request)
    with transaction.atomic(), admit_memories(1):
        return LongTermMemory().update(fact.pk, required_tenant_id(), author=author, **values)


class ReasonForm(pages.PageForm):
    """The reason of a decision."""

    reason = forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=2000,
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": _("Reason, optional")}),
    )


def refuse_lost_value(form: forms.BaseForm, fact: MemoryEntry, changed: Collection[str]) -> None:
    """Add an error to a form that changes the content, and from which no value follows.

    Args:
        form: a form with the fields `content` and `value`.
        fact: the fact.
        changed: the names of the changed fields.
    """
    content = form.cleaned_data.get("content")
    is_unclear = fact.slot and fact.value and content and not value_in(content, fact)
    if "content" in changed and "value" not in changed and is_unclear:
        text = gettext("The new text does not have the value of %(slot)s. Give the new value.")
        form.add_error("value", text % {"slot": fact.slot})


class EditForm(ReasonForm):
    """A proposed fact that is changed before it is confirmed."""

    content = forms.CharField(label=_("Fact"), widget=forms.Textarea(attrs={"rows": 3}))
    value = forms.CharField(
        label=_("Value"),
        required=False,
        max_length=1000,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, fact: MemoryEntry, **kwargs: Any) -> None:
        initial = {"content": fact.content, "value": fact.value}
        super().__init__(*args, initial=initial, **kwargs)
        self.fact = fact

    def clean(self) -> dict[str, Any]:
        """Refuse a content without the value of the slot."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        refuse_lost_value(self, self.fact, self.changed_data)
        return cleaned


@tenant_site.page("facts/review/", permission=REVIEW, title=_("Facts to review"))
def fact_review(request: HttpRequest) -> Content:
    """Show the oldest proposed fact, and take the decision about it."""
    user_id = pages.as_user_id(request.GET.get("user"))
    queue: Any = MemoryEntry.objects.waiting_for_review().order_by("created_at", "memory_id")
    if user_id:
        queue = queue.filter(user_id=user_id)
    refused = None
    if request.method == "POST":
        refused = _handle_decision(request, pages.as_uuid(request.POST.get("fact")))
        if refused is None:
            query = {"user": user_id} if user_id else None
            return redirect(reverse("admin:fact_review", query=query))
    skipped = pages.as_uuid(request.GET.get("after"))
    after = None if skipped is None else MemoryEntry.objects.filter(pk=skipped).first()
    later = queue if after is None else queue.filter(created_at__gt=after.created_at)
    fact: Any = later.defer("embedding").first() if refused is None else refused.fact
    if fact is None:
        access.log_access(request, Action.LIST, "proposed facts")
    else:
        access.log_row_access(request, Action.VIEW, fact)
    count = queue.order_by()[: MAX_COUNT + 1].count()
    return {
        "fact": fact,
        "count": f"{MAX_COUNT}+" if count > MAX_COUNT else count,
        "agent": fact and pages.agent_names().get(fact.agent_id, gettext("all agents")),
        "is_fullwidth": 1,
        **({} if fact is None else _fact_context(fact, refused)),
    }


def _fact_context(fact: MemoryEntry, editing: EditForm | None) -> dict[str, Any]:
    """Return the data for a reviewer's decision about a fact, with a form that has errors."""
    evidence = list(_evidence(memory=fact))
    old = MemoryEntry.objects.entries().filter(pk=fact.replaces).first() if fact.replaces else None
    turns: list[dict[str, Any]] = []
    if evidence:
        anchor = evidence[0].message
        marks: dict[UUID, list[tuple[int, int]]] = {}
        for item in evidence:
            marks.setdefault(item.message_id, []).append((item.start, item.end))
        # With annotations, such as `shown`.
        nearby: list[Any] = [*turns_around(anchor, earlier=TURNS_BEFORE + 1, later=TURNS_AFTER)]
        turns = [
            {"message": turn, "text": pages.marked_spans(turn.shown, marks.get(turn.pk, []))}
            for turn in nearby
        ]
    shown_ids = {turn["message"].pk for turn in turns}
    return {
        "person_name": displayed_names([fact.user_id or ""]).get(fact.user_id or ""),
        "turns": turns,
        "anchor": evidence[0].message if evidence else None,
        "agent_name": evidence[0].agent_name if evidence else "",
        "elsewhere": [item for item in evidence if item.message_id not in shown_ids],
        "old": old,
        "difference": pages.mark_difference(old.content, fact.content) if old else "",
        "editing": editing or EditForm(fact=fact),
        "rejecting": ReasonForm(auto_id="reject_%s"),
    }


def _handle_decision(request: HttpRequest, memory_id: UUID | None) -> EditForm | None:
    """Take the decision of a form, and show its outcome; return a form with errors."""
    decision = request.POST.get("decision", "")
    fact = get_object_or_404(MemoryEntry.objects.entries().defer("embedding"), pk=memory_id)
    if ("confirm" if decision == "edit" else decision) not in decisions_for(fact):
        text = gettext("The fact “%(fact)s” is %(state)s by now: nothing was changed.")
        shown = {"fact": shorten(fact.content, 80), "state": status_of(fact)}
        messages.warning(request, text % shown)
        return None
    if decision == "edit":
        return _edit(request, fact)
    form = ReasonForm(request.POST)
    if form.is_valid():
        with pages.show_outcome(request), transaction.atomic():
            decide(request, fact, decision, form.cleaned_data["reason"])
    else:
        messages.warning(request, gettext("This cannot be saved: check the reason."))
    return None


def _edit(request: HttpRequest, fact: MemoryEntry) -> EditForm | None:
    """Change a proposed fact and confirm it; return the form if it has errors."""
    form = EditForm(request.POST, fact=fact)
    if form.is_valid():
        data = form.cleaned_data
        changes = {name: data[name] for name in ("content", "value") if name in form.changed_data}
        with pages.show_outcome(request, form=form), transaction.atomic():
            if changes:
                update_fact(request, fact, reason=data["reason"], **changes)
            decide(request, fact, "confirm", data["reason"])
    if not form.is_valid():
        return form
    if changes and also_said(MemoryEntry.objects.get(pk=fact.pk)):
        address = reverse("admin:memory_memoryentry_change", args=[fact.pk]) + "#also-said"
        text = gettext("Other messages say the old value.")
        messages.info(request, html.format_html('<a href="{}">{}</a>', address, text))
    return None


def decide(request: HttpRequest, fact: MemoryEntry, decision: str, reason: str) -> None:
    """Confirm, reject, retract, restore or end a fact as the person of the request, and log it."""
    services = {"confirm": confirm, "reject": reject, "retract": retract, "restore": restore}
    with access.logged_change(request, fact, Action.DECIDE, decision=decision):
        if decision == "end":
            update_fact(request, fact, valid_to=timezone.now(), reason=reason)
        else:
            services[decision](fact.pk, author=access.author_of(request), reason=reason)
    messages.success(request, f"{DECISIONS[decision][1]}: {fact.content[:80]}")


# The label and the message of success of each decision.
DECISIONS: Final = {
    "confirm": (_("Confirm"), _("Confirmed")),
    "reject": (_("Reject"), _("Rejected")),
    "retract": (_("Retract"), _("Retracted")),
    "restore": (_("Restore"), _("Restored")),
    "end": (_("End"), _("Ended")),
}


def is_over(fact: MemoryEntry) -> bool:
    """Return whether the validity of a fact has ended, or the fact has expired."""
    return any(end and end <= timezone.now() for end in (fact.valid_to, fact.expires_at))


def status_of(fact: MemoryEntry) -> str:
    """Return the word for the state of a fact, or of an old version."""
    if fact.version_of is not None:
        return gettext("old version")
    if fact.state != FactState.ACTIVE:
        return gettext(fact.state)
    is_current = not is_over(fact) and fact.valid_from <= timezone.now()
    return gettext("current") if is_current else gettext("ended")


def decisions_for(fact: MemoryEntry) -> dict[str, Any]:
    """Return the decisions that fit the state of a fact, with their labels."""
    fitting = {
        FactState.PROPOSED: ["confirm", "reject"],
        FactState.ACTIVE: ["retract"] if is_over(fact) else ["end", "retract"],
        FactState.SUPERSEDED: ["restore", "retract"],
        FactState.RETRACTED: ["restore"],
        FactState.REJECTED: ["restore"],
    }[FactState(fact.state)]
    return {decision: DECISIONS[decision][0] for decision in fitting}


@tenant_site.post_page("facts/<uuid:memory_id>/decide/", permission=REVIEW)
def decide_fact(request: HttpRequest, memory_id: UUID) -> HttpResponseBase:
    """Take a decision that the page of a fact offers."""
    _handle_decision(request, memory_id)
    return redirect("admin:memory_memoryentry_change", memory_id)


MAX_ALSO_SAID: Final = 20
MAX_OLD_VERSIONS: Final = 5


def also_said(fact: MemoryEntry) -> list[tuple[Message, str, str]]:
    """Return messages of the person that say a corrected value, and are not excluded from recall.

    Returns:
        Messages, each with the sentence and its position as the form of exclusions takes it.
    """
    if fact.user_id is None:
        return []
    is_retracted = fact.state == FactState.RETRACTED
    versions = MemoryEntry.objects.versions_of(fact.pk)
    wrong = versions if is_retracted else versions.filter(version_of__isnull=False)
    found: dict[UUID, tuple[Message, str, str]] = {}
    for version in wrong[:MAX_OLD_VERSIONS]:
        stems = wrong_stems(version, "" if is_retracted else fact.content)
        if not stems:
            continue
        result = search_messages(
            " ".join(sorted(stems)),
            message_filter=MessageFilter(agent_id=fact.agent_id, user_id=fact.user_id),
            limit=MAX_ALSO_SAID,
            query_embedding=list(version.embedding),
        )
        for hit in result.hits:
            if (place := _included_sentence(hit.message, stems)) is not None:
                found[hit.message.pk] = (hit.message, *place)
    return sorted(found.values(), key=lambda said: said[0].created_at)


def _included_sentence(message: Message, stems: set[str]) -> tuple[str, str] | None:
    """Return the first sentence with these words that recall does not leave out, and its place."""
    exclusions = list(message.recall_exclusions.all())
    sentences = sentence_spans(message.content)
    for text, start, end in sentences:
        is_excluded = any(
            row.start is None or row.end is None or (row.start < end and start < row.end)
            for row in exclusions
        )
        if not is_excluded and stems <= set(lexemes(text)):
            return text, f"{start}-{end}" if len(sentences) > 1 else WHOLE_MESSAGE
    return None


def evidence_of(fact: MemoryEntry) -> list[FactEvidence]:
    """Return the evidence of a fact and of its old versions, with messages, oldest first."""
    ids = MemoryEntry.objects.versions_of(fact.fact_id).order_by().values("memory_id")
    return list(_evidence(memory_id__in=ids).order_by("message__created_at")[:50])


def _evidence(**where: Any) -> QuerySet[Any]:
    """Return evidence with its messages; `agent_name` is the name of the message's agent."""
    agents = Agent.objects.filter(pk=OuterRef("message__agent_id"))
    rows = FactEvidence.objects.filter(**where).select_related("message")
    return rows.annotate(agent_name=Subquery(agents.values("name")[:1]))


FACT: Final = pages.link_column(
    "memory_id", _("Memory"), _("Open fact"), "memory_memoryentry_change"
)
MESSAGE: Final = pages.link_column(
    "message_id", _("Message"), _("Open conversation"), "conversation"
)


@admin.register(FactEvidence, site=tenant_site)
class FactEvidenceAdmin(access.AuditedReadOnlyAdmin):
    """The words of messages that facts rest on."""

    list_display = ("created_at", "quote", FACT, MESSAGE)
    sortable_by = ()
    ordering = ("-created_at", "id")


@admin.register(FactEvent, site=tenant_site)
class FactEventAdmin(access.AuditedReadOnlyAdmin):
    """Changes of facts, with their authors."""

    list_display = ("created_at", "action", "author_kind", "author_name", "why", FACT)
    fields = (*list_display[:5], "memory", "other_id", "author_id", "number", "id")
    list_filter = ("action", "author_kind")
    sortable_by = ()
    ordering = ("-number",)

    @admin.display(description=_("reason"))
    def why(self, event: FactEvent) -> str:
        """The author's reason, or one of the platform's."""
        return event.reason if event.author_kind == AuthorKind.PERSON else translated(event.reason)


RUN: Final = "admin:orchestrator_extractionrun_change"


@admin.register(ExtractionRun, site=tenant_site)
class ExtractionRunAdmin(access.RowPageAdmin):
    """Requests for the facts of a part of a conversation."""

    list_display = (
        *("created_at", "state", "agent", "user_id", "model", "prompt_tokens"),
        *("completion_tokens", "cost", pages.error),
    )
    list_filter = ("state", pages.AgentFilter, pages.UserFilter, "created_at")
    search_fields = ("=user_id", "=thread_id")
    template = "konstruct/extraction_run.html"
    title = _("Extraction run")

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return a run with its candidates."""
        requester = access.author_name(row.requested_by)
        return {"run": row, "requester": requester, "is_fullwidth": 1}


@tenant_site.page(
    "extraction-runs/<uuid:run_id>/roll-back/",
    permission="orchestrator.change_extractionrun",
    title=_("Roll back an extraction run"),
)
def roll_back_extraction_run(request: HttpRequest, run_id: UUID) -> Content:
    """Undo a run, after a page that lists the facts that would change."""
    run = get_object_or_404(ExtractionRun, pk=run_id)
    if request.method != "POST":
        with pages.show_outcome(request):
            found = runs.preview_roll_back(run_id, author=access.author_of(request))
            access.log_row_access(request, Action.VIEW, run)
            return {
                "run": run,
                "groups": [
                    (gettext("Removed"), found["removed"]),
                    (gettext("Restored"), found["restored"]),
                    (gettext("Kept"), found["kept"]),
                ],
            }
        return redirect(RUN, run_id)
    with pages.show_outcome(request):
        with access.logged_change(request, run, Action.DECIDE, decision="roll_back"):
            counts = runs.roll_back(run_id, author=access.author_of(request))
        text = gettext(
            "Rolled back. Facts: %(removed)s removed, %(restored)s restored, %(kept)s kept."
        )
        messages.success(request, text % {"removed": 0, "restored": 0, "kept": 0, **counts})
    return redirect(RUN, run_id)
