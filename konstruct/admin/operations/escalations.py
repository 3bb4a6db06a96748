"""Escalations: threads in which a person or another agent answers, and the pages to answer."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from uuid import UUID, uuid5

from django import forms
from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import AgentRowsAdmin, actor_of, note_row
from konstruct.admin.choosing import as_uuid, memory_query
from konstruct.admin.lists import AgentFilter, ChoiceFilter, UserFilter, link
from konstruct.admin.pages import PageForm, show_outcome
from konstruct.orchestrator.handoff.escalations import (
    ANSWER_PERMISSION,
    OpenedBy,
    Thread,
    answer_as_person,
    assign,
    held_replies,
    open_escalation,
    possible_assignees,
    resolve,
)
from konstruct.orchestrator.handoff.handovers import hand_over
from konstruct.orchestrator.models import Agent, Escalation
from memory.browse.threads import last_name, turns_around
from memory.models import Message
from tenants import transaction
from tenants.admin.badges import Colours
from tenants.admin.row_forms import FormWithId
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action

SEE = "orchestrator.view_escalation"
CALL = "orchestrator.add_escalation"
MAX_ANSWER_CHARACTERS = 32_768
MAX_COLLEAGUES = 200


class StateFilter(ChoiceFilter):
    """Open, or resolved."""

    title = _("state")
    parameter_name = "state"
    values = {"open": _("open"), "resolved": _("resolved")}

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.open() if value == "open" else rows.resolved()


class ToFilter(ChoiceFilter):
    """To a person, or to another agent."""

    title = _("answered by")
    parameter_name = "to"
    values = {"person": _("a person"), "agent": _("another agent")}

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.to_people() if value == "person" else rows.to_agents()


class AssignedFilter(ChoiceFilter):
    """Assigned to the current user, or to no user."""

    title = _("assigned")
    parameter_name = "assigned"
    values = {"me": _("to me"), "none": _("unassigned")}

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() not in self.values:
            return queryset
        name = request.user.get_username() if self.value() == "me" else ""
        return queryset.filter(assigned_to=name)


@admin.register(Escalation, site=tenant_site)
class EscalationAdmin(AgentRowsAdmin):
    """Threads in which a person or another agent answers, or has answered."""

    list_display = (
        "opened_at", "state", "assigned_to", "agent", "to_whom", "user_id", "channel", "reason",
        "opened_by", "resolved_by", "thread_link",
    )  # fmt: skip
    list_filter = (StateFilter, AssignedFilter, ToFilter, AgentFilter, UserFilter, "opened_by")
    search_fields = ("=user_id", "reason", "note")
    time_column = "opened_at"
    ordering = ("-opened_at", "id")
    fields = (
        *("state", "agent", "to_whom", "user_id", "thread_id", "channel", "thread_link", "reason"),
        *("opened_by", "opened_by_name", "opened_at", "assigned_to"),
        *("resolved_at", "resolved_by", "outcome", "note"),
    )

    agent_columns = {"agent_name": "agent_id", "to_agent_name": "to_agent_id"}

    @display(description=_("Answered by"))
    def to_whom(self, escalation: Any) -> str:
        """A person, or the agent that it was handed to."""
        if escalation.to_agent_id is None:
            return gettext("a person")
        return escalation.to_agent_name or str(escalation.to_agent_id)

    @display(description=_("State"), label=Colours({"open": "warning", "resolved": "success"}))
    def state(self, escalation: Escalation) -> str:
        """Return the word for the row's state."""
        return gettext("open") if escalation.resolved_at is None else gettext("resolved")

    @display(description=_("Messages"))
    def thread_link(self, escalation: Escalation) -> SafeString:
        """A link to the page of the escalation, where an open one is answered."""
        is_answered = escalation.resolved_at is not None or escalation.to_agent_id is not None
        text = gettext("Read") if is_answered else gettext("Read and answer")
        return link(text, "escalation", escalation.pk)


class AnswerForm(FormWithId, PageForm):
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


class ResolutionForm(PageForm):
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


class CallForm(forms.Form):
    """Why a person should answer."""

    reason = forms.CharField(max_length=2000, required=False)


@tenant_site.page("escalations/<uuid:escalation_id>/", name="escalation", permission=SEE)
def escalation(request: HttpRequest, escalation_id: UUID) -> HttpResponseBase:
    """The thread with its waiting messages, and forms to answer and to resolve."""
    return _page(request, _found(escalation_id), AnswerForm(), ResolutionForm())


@tenant_site.post_page(
    "escalations/<uuid:escalation_id>/answer/",
    name="answer_escalation",
    permission=ANSWER_PERMISSION,
)
def answer(request: HttpRequest, escalation_id: UUID) -> HttpResponseBase:
    """Answer the user as a person."""
    found, form = _found(escalation_id), AnswerForm(request.POST)
    if not form.is_valid():
        return _page(request, found, form, ResolutionForm())
    content = form.cleaned_data["content"]
    with show_outcome(request, gettext("The answer is on its way to the user.")):
        answer_as_person(
            found.pk,
            content,
            name=actor_of(request).name,
            # The same page sends another text as another answer.
            idempotency_key=str(uuid5(form.row_id, content)),
            on_change=lambda turn: _note(request, Action.ANSWER, found, message=str(turn.pk)),
        )
    return redirect("admin:escalation", found.pk)


@tenant_site.post_page(
    "escalations/<uuid:escalation_id>/resolve/",
    name="resolve_escalation",
    permission=ANSWER_PERMISSION,
)
def end(request: HttpRequest, escalation_id: UUID) -> HttpResponseBase:
    """Resolve an escalation: the agent answers in the thread again."""
    found, form = _found(escalation_id), ResolutionForm(request.POST)
    if not form.is_valid():
        return _page(request, found, AnswerForm(), form)
    was, outcome = row_state(found), form.cleaned_data["outcome"]
    success = gettext("Resolved: the agent answers in this thread again.")
    with show_outcome(request, success), transaction.atomic():
        resolved = resolve(
            found.pk,
            by=request.user.get_username(),
            let_agent_answer=outcome == "agent",
            note=form.cleaned_data["note"],
        )
        after = row_state(resolved)
        _note(request, Action.RESOLVE, found, outcome=outcome, before=was, after=after)
    return redirect("admin:escalation", found.pk)


def colleague_names() -> list[str]:
    """Return the usernames of the people who may answer, for the choice of an assignment."""
    return list(possible_assignees().values_list("username", flat=True)[:MAX_COLLEAGUES])


@tenant_site.post_page(
    "escalations/<uuid:escalation_id>/assign/",
    name="assign_escalation",
    permission=ANSWER_PERMISSION,
)
def assign_escalation(request: HttpRequest, escalation_id: UUID) -> HttpResponseBase:
    """Assign an escalation to a colleague, or to no user, and redirect to the page before."""
    found, to = _found(escalation_id), request.POST.get("to", "")
    was = row_state(found)
    success = gettext("Assigned to %(to)s.") % {"to": to} if to else gettext("Unassigned.")
    with show_outcome(request, success), transaction.atomic():
        assigned = assign(found.pk, to=to)
        _note(request, Action.EDIT, found, before=was, after=row_state(assigned))
    if request.POST.get("back") == "today":
        return redirect("admin:index")
    return redirect("admin:escalation", found.pk)


@tenant_site.post_page(
    "conversations/<uuid:message_id>/escalate/", name="escalate", permission=CALL
)
def escalate(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Open an escalation: a person answers in the thread of a message from now on."""
    form = CallForm(request.POST)
    reason = form.cleaned_data["reason"] if form.is_valid() else ""
    reason = reason or f"{request.user.get_username()} wants to answer."
    return _open(request, message_id, partial(open_escalation, reason=reason))


@tenant_site.post_page(
    "conversations/<uuid:message_id>/hand-over/", name="hand_over", permission=CALL
)
def hand(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Transfer the thread of a message to another agent."""
    to_agent = as_uuid(request.POST.get("agent"))
    if to_agent is None:
        raise Http404("This tenant has no such agent.")
    reason = f"{request.user.get_username()} transferred it."
    return _open(
        request,
        message_id,
        partial(hand_over, to_agent=to_agent, reason=reason),
        gettext("Transferred. The other agent answers in this thread."),
    )


def _open(
    request: HttpRequest,
    message_id: UUID,
    open_in: Callable[..., tuple[Escalation, bool]],
    success: str = "",
) -> HttpResponseBase:
    """Open an escalation in the thread of a message, log it, and go to its page."""
    message = get_object_or_404(Message.objects.defer("content"), pk=message_id)
    with show_outcome(request, success), transaction.atomic():
        opened, is_new = open_in(
            Thread.of(message), opened_by=OpenedBy.PERSON, name=request.user.get_username()
        )
        if is_new:
            _note(request, Action.ESCALATE, opened, after=row_state(opened))
        return redirect("admin:escalation", opened.pk)
    return redirect("admin:conversation", message_id)


def others_than(
    agents: Iterable[Agent], agent_id: UUID, to_agent_id: UUID | None = None
) -> list[Agent]:
    """Return the active agents that a thread can be transferred to."""
    return [each for each in agents if each.is_active and each.pk not in (agent_id, to_agent_id)]


def _page(
    request: HttpRequest, found: Escalation, answering: AnswerForm, ending: ResolutionForm
) -> HttpResponseBase:
    # A form that comes back with its errors shows the thread, too.
    _note(request, Action.VIEW, found)
    thread = Thread.of(found)
    waiting = {pending.pk for pending in held_replies(thread)}
    last = (
        Message.objects.filter(**thread.as_filter)
        .defer("content")
        .order_by("-created_at", "-number")
        .first()
    )
    turns = [] if last is None else turns_around(last, earlier=50)
    agents = list(Agent.objects.only("pk", "name", "is_active"))
    names = {each.pk: each.name for each in agents}
    to_agent = found.to_agent_id and names.get(found.to_agent_id, str(found.to_agent_id))
    may_hand = last is not None and found.resolved_at is None and request.user.has_perm(CALL)
    return tenant_site.render(
        request,
        "konstruct/escalation.html",
        title=(
            gettext("%(name)s answers")
            if found.resolved_at is None
            else gettext("%(name)s answered")
        )
        % {"name": to_agent or gettext("A person")},
        escalation=found,
        agent=names.get(found.agent_id, str(found.agent_id)),
        to_agent=to_agent,
        from_agent=found.from_agent_id and names.get(found.from_agent_id, ""),
        others=others_than(agents, found.agent_id, found.to_agent_id) if may_hand else [],
        may_call=may_hand and found.to_agent_id is not None,
        person=last_name(turns),
        turns=[(turn, turn.pk in waiting) for turn in turns],
        waiting=len(waiting),
        last=last,
        answering=answering,
        row_id=answering.row_id,
        ending=ending,
        may_answer=found.resolved_at is None
        and found.to_agent_id is None
        and request.user.has_perm(ANSWER_PERMISSION),
        may_resolve=found.resolved_at is None and request.user.has_perm(ANSWER_PERMISSION),
        colleagues=colleague_names() if found.resolved_at is None else [],
        query=memory_query(None, found.user_id),
        is_fullwidth=1,
    )


def _found(escalation_id: UUID) -> Escalation:
    return get_object_or_404(Escalation, pk=escalation_id)


def _note(request: HttpRequest, action: Action, found: Escalation, **detail: Any) -> None:
    subject = "escalation" if action is not Action.ESCALATE else "conversation"
    note_row(request, action, found, subject, thread_id=found.thread_id, **detail)
