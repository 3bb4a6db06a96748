"""Escalations: threads in which a person or another agent answers, and the pages to answer."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from uuid import UUID, uuid4, uuid5

from django import forms
from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display

from konstruct.admin import access, pages
from konstruct.orchestrator.handoff import escalations, handovers
from konstruct.orchestrator.models import Agent, Escalation
from memory.browse.lists import turns_around
from memory.models import Message
from tenants import transaction
from tenants.admin import recorded_admin, sites
from tenants.audit.changes import row_state
from tenants.audit.models import Action

VIEW = "orchestrator.view_escalation"
ESCALATE = "orchestrator.add_escalation"
ANSWER = escalations.ANSWER_PERMISSION
MAX_ANSWER_CHARACTERS = 32_768
MAX_COLLEAGUES = 200


@admin.register(Escalation, site=sites.tenant_site)
class EscalationAdmin(access.AgentRowsAdmin):
    """Threads in which a person or another agent answers, or has answered."""

    list_display = (
        "opened_at", "state", "thread_link", "assigned_to", "agent", "answered_by", "user_id",
        "channel", "reason", "opened_by", "resolved_by",
    )  # fmt: skip
    list_filter = (
        ("resolved_at", admin.EmptyFieldListFilter),
        ("to_agent_id", admin.EmptyFieldListFilter),
        *("assigned_to", pages.AgentFilter, pages.UserFilter, "opened_by", "opened_at"),
    )
    search_fields = ("=user_id", "reason", "note")
    time_column = "opened_at"
    ordering = ("-opened_at", "id")
    agent_columns = {"agent_name": "agent_id", "to_agent_name": "to_agent_id"}

    @display(description=_("Answered by"))
    def answered_by(self, escalation: Any) -> str:
        """A person, or the agent that it was handed to."""
        if escalation.to_agent_id is None:
            return gettext("a person")
        return escalation.to_agent_name or str(escalation.to_agent_id)

    @display(description=_("State"), label=recorded_admin.BADGES)
    def state(self, escalation: Escalation) -> str:
        """Return the word for the row's state."""
        return gettext("open") if escalation.resolved_at is None else gettext("resolved")

    @display(description=_("Messages"))
    def thread_link(self, escalation: Escalation) -> str:
        """A link to the page of the escalation, where an open one is answered."""
        is_answered = escalation.resolved_at is not None or escalation.to_agent_id is not None
        text = gettext("Read") if is_answered else gettext("Read and answer")
        return pages.link(text, "escalation", escalation.pk)


class AnswerForm(pages.PageForm):
    """The answer of a person to the user."""

    content = forms.CharField(
        label=_("Answer as a person"),
        max_length=MAX_ANSWER_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_(
            "The user reads it under your name, in the channel where they wrote. It answers "
            "all messages that wait here."
        ),
    )
    # The same page sends another text as another answer.
    answer_id = forms.UUIDField(
        initial=uuid4, required=False, widget=forms.HiddenInput({"data-kept": ""})
    )


class ResolutionForm(pages.PageForm):
    """How an escalation ends."""

    outcome = forms.ChoiceField(
        label=_("Messages that wait"),
        choices=[
            ("person", _("A person has answered them: close")),
            ("agent", _("The agent answers them")),
        ],
    )
    note = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("For the record; the user does not see it."),
    )


@sites.tenant_site.page("escalations/<uuid:escalation_id>/", permission=VIEW)
def escalation(request: HttpRequest, escalation_id: UUID) -> HttpResponseBase:
    """The thread with its waiting messages, and forms to answer and to resolve."""
    row = get_object_or_404(Escalation, pk=escalation_id)
    return _render_page(request, row, AnswerForm(), ResolutionForm())


@sites.tenant_site.post_page("escalations/<uuid:escalation_id>/answer/", permission=ANSWER)
def answer_escalation(request: HttpRequest, escalation_id: UUID) -> HttpResponseBase:
    """Answer the user as a person."""
    row, form = get_object_or_404(Escalation, pk=escalation_id), AnswerForm(request.POST)
    if not form.is_valid():
        return _render_page(request, row, form, ResolutionForm())
    content = form.cleaned_data["content"]
    with pages.show_outcome(request, gettext("The answer is on its way to the user.")):
        escalations.answer_as_person(
            row.pk,
            content,
            name=access.actor_of(request).name,
            idempotency_key=str(uuid5(form.cleaned_data["answer_id"] or uuid4(), content)),
            on_change=lambda turn: access.log_row_access(
                request, Action.ANSWER, row, message=str(turn.pk)
            ),
        )
    return redirect("admin:escalation", row.pk)


@sites.tenant_site.post_page("escalations/<uuid:escalation_id>/resolve/", permission=ANSWER)
def resolve_escalation(request: HttpRequest, escalation_id: UUID) -> HttpResponseBase:
    """Resolve an escalation: the agent answers in the thread again."""
    row, form = get_object_or_404(Escalation, pk=escalation_id), ResolutionForm(request.POST)
    if not form.is_valid():
        return _render_page(request, row, AnswerForm(), form)
    outcome = form.cleaned_data["outcome"]
    logged = access.logged_change(request, row, Action.RESOLVE, outcome=outcome)
    success = gettext("Resolved: the agent answers in this thread again.")
    with pages.show_outcome(request, success), logged:
        escalations.resolve(
            row.pk,
            by=request.user.get_username(),
            let_agent_answer=outcome == "agent",
            note=form.cleaned_data["note"],
        )
    return redirect("admin:escalation", row.pk)


@sites.tenant_site.post_page("escalations/<uuid:escalation_id>/assign/", permission=ANSWER)
def assign_escalation(request: HttpRequest, escalation_id: UUID) -> HttpResponseBase:
    """Assign an escalation to a colleague, or to no user, and show it again."""
    row, to = get_object_or_404(Escalation, pk=escalation_id), request.POST.get("to", "")
    success = gettext("Assigned to %(to)s.") % {"to": to} if to else gettext("Unassigned.")
    with pages.show_outcome(request, success), access.logged_change(request, row):
        escalations.assign(row.pk, to=to)
    return redirect("admin:escalation", row.pk)


@sites.tenant_site.post_page("conversations/<uuid:message_id>/escalate/", permission=ESCALATE)
def escalate(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Open an escalation: a person answers in the thread of a message from now on."""
    reason = f"{request.user.get_username()} wants to answer."
    return _open_in_thread(request, message_id, partial(escalations.open_escalation, reason=reason))


@sites.tenant_site.post_page("conversations/<uuid:message_id>/hand-over/", permission=ESCALATE)
def hand_over(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Transfer the thread of a message to another agent."""
    to_agent = pages.as_uuid(request.POST.get("agent"))
    if to_agent is None:
        raise Http404("This tenant has no such agent.")
    reason = f"{request.user.get_username()} transferred it."
    return _open_in_thread(
        request,
        message_id,
        partial(handovers.hand_over, to_agent=to_agent, reason=reason),
        gettext("Transferred. The other agent answers in this thread."),
    )


def _open_in_thread(
    request: HttpRequest,
    message_id: UUID,
    open_in: Callable[..., tuple[Escalation, bool]],
    success: str = "",
) -> HttpResponseBase:
    """Open an escalation in the thread of a message, log it, and go to its page."""
    message = get_object_or_404(Message.objects.defer("content"), pk=message_id)
    with pages.show_outcome(request, success), transaction.atomic():
        opened, is_new = open_in(
            escalations.Thread.of(message),
            opened_by=escalations.OpenedBy.PERSON,
            name=request.user.get_username(),
        )
        if is_new:
            after = row_state(opened)
            access.log_row_access(request, Action.ESCALATE, opened, "conversation", after=after)
        return redirect("admin:escalation", opened.pk)
    return redirect("admin:conversation", message_id)


def transfer_targets(
    agents: Iterable[Agent], agent_id: UUID, to_agent_id: UUID | None = None
) -> list[Agent]:
    """Return the active agents that a thread can be transferred to."""
    return [
        agent for agent in agents if agent.is_active and agent.pk not in (agent_id, to_agent_id)
    ]


def _render_page(
    request: HttpRequest, row: Escalation, answer_form: AnswerForm, resolution_form: ResolutionForm
) -> HttpResponseBase:
    # A form that comes back with its errors shows the thread, too.
    access.log_row_access(request, Action.VIEW, row)
    thread = escalations.Thread.of(row)
    waiting = {pending.pk for pending in escalations.held_replies(thread)}
    last = (
        Message.objects.filter(**thread.as_filter)
        .defer("content")
        .order_by("-created_at", "-number")
        .first()
    )
    turns = [] if last is None else turns_around(last, earlier=50)
    agents = list(Agent.objects.only("pk", "name", "is_active"))
    names = {agent.pk: agent.name for agent in agents}
    to_agent = row.to_agent_id and names.get(row.to_agent_id, str(row.to_agent_id))
    is_open = row.resolved_at is None
    may_transfer = last is not None and is_open and request.user.has_perm(ESCALATE)
    may_resolve = is_open and request.user.has_perm(ANSWER)
    colleagues = escalations.possible_assignees().values_list("username", flat=True)
    title = gettext("%(name)s answers") if is_open else gettext("%(name)s answered")
    return sites.tenant_site.render(
        request,
        "konstruct/escalation.html",
        title=title % {"name": to_agent or gettext("A person")},
        escalation=row,
        agent=names.get(row.agent_id, str(row.agent_id)),
        to_agent=to_agent,
        from_agent=row.from_agent_id and names.get(row.from_agent_id, ""),
        others=transfer_targets(agents, row.agent_id, row.to_agent_id) if may_transfer else [],
        may_call=may_transfer and row.to_agent_id is not None,
        person=turns[-1].person_name if turns else "",  # type: ignore[attr-defined]
        turns=[(turn, turn.pk in waiting) for turn in turns],
        waiting=len(waiting),
        last=last,
        answering=answer_form,
        ending=resolution_form,
        may_answer=may_resolve and row.to_agent_id is None,
        may_resolve=may_resolve,
        colleagues=colleagues[:MAX_COLLEAGUES] if is_open else [],
        is_fullwidth=1,
    )
