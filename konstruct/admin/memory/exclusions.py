"""Excluding a message, or a sentence of it, from recall by hand, and including it again."""

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import F
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import author_of, log_row_access
from konstruct.admin.memory.fact_review import WHOLE_MESSAGE, ReasonForm
from konstruct.admin.pages import as_number, as_uuid, show_outcome
from memory.facts import exclude_from_recall, include_again
from memory.models import Message, RecallExclusion
from memory.text.chunking import sentence_spans
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action

EXCLUDE: Final = "memory.add_recallexclusion"
INCLUDE: Final = "memory.delete_recallexclusion"
# Sentences of a long message that can be chosen one by one.
MAX_SENTENCES: Final = 200


class ExclusionForm(ReasonForm):
    """The words to exclude, and why."""

    words = forms.ChoiceField(label=_("Exclude"), widget=forms.RadioSelect, initial=WHOLE_MESSAGE)

    def __init__(self, *args: Any, message: Message, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        sentences = sentence_spans(message.content)[:MAX_SENTENCES]
        choices = [(WHOLE_MESSAGE, gettext("The whole message"))]
        if len(sentences) > 1:
            choices += [(f"{start}-{end}", text[:300]) for text, start, end in sentences]
        field: Any = self.fields["words"]
        field.choices = choices
        self.order_fields(["words", "reason"])


def exclusion_label(*, is_whole: bool) -> str:
    """Return in words that a message, or some of its words, is excluded."""
    if is_whole:
        return gettext("excluded from recall")
    return gettext("words of it are excluded from recall")


def excluded_labels(message_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return for each excluded message whether all of it is excluded, in words."""
    rows = RecallExclusion.objects.filter(message_id__in=list(message_ids))
    # Exclusions of whole messages are the last.
    by_start = rows.order_by(F("start").desc(nulls_last=True)).values_list("message_id", "start")
    return {pk: exclusion_label(is_whole=start is None) for pk, start in by_start}


@tenant_site.page("messages/<uuid:message_id>/exclude/", name="exclude_message", permission=EXCLUDE)
def exclude(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Show a message with its exclusions, and exclude it or one of its sentences."""
    message = get_object_or_404(Message, pk=message_id)
    form = ExclusionForm(request.POST or None, message=message)
    if request.method == "POST" and form.is_valid():
        start, _, end = form.cleaned_data["words"].partition("-")
        success = gettext("Excluded. Recall leaves it out from now on.")
        with show_outcome(request, success, form=form, field="words"):
            exclude_from_recall(
                message,
                author=author_of(request),
                start=as_number(start),
                end=as_number(end),
                reason=form.cleaned_data["reason"],
            )
        if form.is_valid() and (fact_id := as_uuid(request.POST.get("fact"))):
            return redirect("admin:memory_memoryentry_change", fact_id)
        if form.is_valid():
            return redirect("admin:exclude_message", message_id)
    log_row_access(request, Action.VIEW, message)
    return tenant_site.render(
        request,
        "konstruct/exclude_message.html",
        title=gettext("Exclude from recall"),
        message=message,
        form=form,
        exclusions=[
            (
                exclusion,
                message.content
                if exclusion.start is None
                else message.content[exclusion.start : exclusion.end],
            )
            for exclusion in RecallExclusion.objects.filter(message=message).order_by("created_at")
        ],
    )


@tenant_site.post_page(
    "messages/<uuid:message_id>/include/<uuid:exclusion_id>/",
    name="include_message",
    permission=INCLUDE,
)
def include(request: HttpRequest, message_id: UUID, exclusion_id: UUID) -> HttpResponseBase:
    """Remove an exclusion."""
    message = get_object_or_404(Message, pk=message_id)
    if include_again(message, author=author_of(request), exclusion_id=exclusion_id):
        messages.success(request, gettext("Included again: recall can find it."))
    else:
        messages.warning(request, gettext("This exclusion was removed before."))
    return redirect("admin:exclude_message", message_id)
