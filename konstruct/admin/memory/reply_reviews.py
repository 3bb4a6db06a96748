"""The review of replies: random replies to be marked right, wrong or unsure, and the marks."""

from typing import Final

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import AgentRowsAdmin, actor_of, log_access, log_row_access
from konstruct.admin.lists import AgentFilter, UserFilter, agent_names, link
from konstruct.admin.memory.sources import sources_of
from konstruct.admin.pages import show_outcome
from konstruct.admin.query_parameters import as_uuid
from konstruct.orchestrator.models import ReplyMark, ReplyReview
from konstruct.orchestrator.reply_reviews import MAX_NOTE_CHARACTERS, random_reply, review_reply
from memory.browse.threads import turns_around
from memory.models import Message
from tenants import transaction
from tenants.admin.badges import Colours
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action

REVIEW: Final = "orchestrator.add_replyreview"
READ: Final = "memory.view_message"
# Turns of the conversation before the reply.
TURNS_BEFORE: Final = 4
MAX_CHANNEL_CHARACTERS: Final = 100


class MarkForm(forms.Form):
    """The mark of a reviewer on a reply."""

    reply = forms.UUIDField()
    mark = forms.ChoiceField(choices=ReplyMark.choices)
    note = forms.CharField(
        required=False,
        max_length=MAX_NOTE_CHARACTERS,
    )


@tenant_site.page("replies/review/", name="reply_review", permission=REVIEW)
def review(request: HttpRequest) -> HttpResponseBase:
    """Show a random reply that the user has not marked, or take the mark of one."""
    agent_id = as_uuid(request.GET.get("agent"))
    channel = request.GET.get("channel", "").replace("\0", "")[:MAX_CHANNEL_CHARACTERS]
    filters = {
        name: value
        for name, value in {"agent": str(agent_id or ""), "channel": channel}.items()
        if value
    }
    if request.method == "POST":
        _mark(request)
        return redirect(reverse("admin:reply_review", query=filters))
    reply_id = random_reply(reviewer=actor_of(request), agent_id=agent_id, channel=channel)
    reply = reply_id and Message.objects.filter(pk=reply_id).first()
    if not reply:
        log_access(request, Action.LIST, "reply reviews", asked=filters)
    else:
        log_row_access(request, Action.VIEW, reply)
    names = agent_names()
    may_read = request.user.has_perm(READ)
    return tenant_site.render(
        request,
        "konstruct/reply_review.html",
        title=gettext("Review replies"),
        reply=reply if may_read else None,
        turns=turns_around(reply, earlier=TURNS_BEFORE + 1, later=0) if reply and may_read else [],
        why=sources_of(reply) if reply and may_read else None,
        agent=reply and names.get(reply.agent_id, str(reply.agent_id)),
        agents=names.items(),
        filters=filters,
        query=urlencode(filters),
        max_note=MAX_NOTE_CHARACTERS,
        is_fullwidth=1,
    )


def _mark(request: HttpRequest) -> None:
    """Set the mark of a form, and show the outcome."""
    form = MarkForm(request.POST)
    if not form.is_valid():
        messages.warning(request, gettext("This cannot be saved: check the mark and the note."))
        return
    data = form.cleaned_data
    with show_outcome(request), transaction.atomic():
        row, is_new = review_reply(
            data["reply"], mark=data["mark"], note=data["note"], by=actor_of(request)
        )
        log_row_access(request, Action.CREATE if is_new else Action.EDIT, row, after=row_state(row))
        text = gettext("Marked as %(mark_display)s.") % {"mark_display": row.get_mark_display()}
        messages.success(request, text)


@admin.register(ReplyReview, site=tenant_site)
class ReplyReviewAdmin(AgentRowsAdmin):
    """Reviewers' marks on replies."""

    list_display = ("created_at", "mark_label", "agent", "user_id", "note", "reviewer_name")
    list_filter = ("mark", AgentFilter, UserFilter, "created_at")
    fields = (
        *("mark", "note", "reviewer_name", "kind", "created_at"),
        *("conversation", "agent", "user_id", "id", "agent_id"),
    )

    @display(
        description=_("Mark"),
        ordering="mark",
        label=Colours({"right": "success", "wrong": "danger", "unsure": "warning"}),
    )
    def mark_label(self, row: ReplyReview) -> str:
        """Return the mark."""
        return str(row.get_mark_display())

    @display(description=_("reviewer kind"))
    def kind(self, row: ReplyReview) -> str:
        """The kind of the reviewer."""
        return gettext(row.reviewer_kind)

    @display(description=_("Reply"))
    def conversation(self, row: ReplyReview) -> SafeString:
        """Return a link to the reply in its conversation."""
        fragment = f"m{row.reply_id}"
        return link(gettext("Open conversation"), "conversation", row.reply_id, fragment=fragment)
