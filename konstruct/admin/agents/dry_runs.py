"""Try it: an agent's answer beside that of its edited form; and a reply's message asked again.

Only saved questions are stored. The agent's page sends its form here without saving it, and this
page sends it again with each message.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.validators import MaxLengthValidator
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext, gettext_lazy as _
from django.views.decorators.http import require_POST

from konstruct.admin.access import log_access, log_row_access
from konstruct.admin.agents.agents import differences
from konstruct.admin.memory.sources import sources_of, with_sources
from konstruct.admin.pages import PageForm, UserField, show_outcome
from konstruct.orchestrator.agents import QUESTIONS, settings_of
from konstruct.orchestrator.dry_runs import DryRun, dry_run, enqueue_questions, save_question
from konstruct.orchestrator.models import Agent, QuestionAnswer, SavedQuestion
from memory.models import Message
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action

TRY: Final = "audit.try_agent"


@tenant_site.post_page("agents/<uuid:agent_id>/questions/ask/", permission=TRY)
def ask_questions(request: HttpRequest, agent_id: UUID) -> HttpResponseBase:
    """Have a worker ask the questions again."""
    agent = get_object_or_404(Agent, pk=agent_id)
    with transaction.atomic():
        enqueue_questions(agent.pk)
        log_row_access(request, Action.TRY, agent, "saved questions")
    messages.success(
        request, gettext("The questions are asked now. Reload the page for the answers.")
    )
    return redirect("admin:try_agent", agent.pk)


@tenant_site.post_page(
    "agents/<uuid:agent_id>/questions/<uuid:question_id>/delete/", permission=TRY
)
def delete_question(request: HttpRequest, agent_id: UUID, question_id: UUID) -> HttpResponseBase:
    """Delete a question with its answers."""
    question = get_object_or_404(SavedQuestion, pk=question_id, agent_id=agent_id)
    with transaction.atomic():
        log_row_access(request, Action.DELETE, question, before=row_state(question))
        question.delete()
    return redirect("admin:try_agent", agent_id)


MAX_MESSAGE_CHARACTERS: Final = 32_768

Side = tuple[str, DryRun, dict[str, Any] | None]
"""One of the answers side by side: its title, the answer, and its sources for why.html."""


class MessageForm(PageForm):
    """A message to an agent, and the person who writes it; a question if it is saved."""

    content = forms.CharField(
        label=_("Message"),
        validators=[MaxLengthValidator(MAX_MESSAGE_CHARACTERS)],
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    user_id = UserField(
        is_known=True, help_text=_("The id or name of the person who writes. Blank: no person.")
    )


@tenant_site.page("agents/<uuid:agent_id>/try/", permission=TRY)
def try_agent(request: HttpRequest, agent_id: UUID) -> HttpResponseBase:
    """Answer a message as a channel would, by the agent and by its edited form; or save it."""
    agent = get_object_or_404(Agent, pk=agent_id)
    data = request.POST if "content" in request.POST else None
    form = MessageForm(data, initial={"user_id": request.GET.get("user", "")})
    edited = _edited_form(request, agent)
    if request.POST.get("do") == "save":
        with show_outcome(request, form=form), transaction.atomic():
            if form.is_valid():
                question = save_question(agent, **form.cleaned_data)
                enqueue_questions(agent.pk)
                log_row_access(request, Action.CREATE, question, after=row_state(question))
        if form.is_valid():
            return redirect("admin:try_agent", agent.pk)
        return _render(request, agent, form, edited=edited)
    agents = {gettext("The agent as it is"): agent}
    changes = []
    if edited is not None and edited.is_valid():
        changes = differences(settings_of(agent), settings_of(edited.instance))
    if changes:
        agents[gettext("The agent as edited")] = edited.instance
    sides: list[Side] = []
    if form.is_valid() and (edited is None or edited.is_valid()):
        content, user_id = form.cleaned_data["content"], form.cleaned_data["user_id"]
        log_row_access(request, Action.TRY, agent, user_id=user_id)
        with show_outcome(request, form=form):
            for title, asked in agents.items():
                run = dry_run(asked, content, user_id=user_id)
                sides.append((title, run, _sources(run, user_id)))
    return _render(request, agent, form, sides, edited=edited, changes=changes)


@tenant_site.page("messages/<uuid:reply_id>/ask-again/", permission=TRY)
@require_POST
def ask_again(request: HttpRequest, reply_id: UUID) -> HttpResponseBase:
    """Answer the message of a reply by today's memory, without both, beside the reply."""
    reply = get_object_or_404(Message.objects.select_related("in_reply_to"), pk=reply_id)
    question = reply.in_reply_to
    agent = Agent.objects.filter(pk=reply.answered_by_id or reply.agent_id).first()
    may_read = request.user.has_perms(("memory.view_message", "memory.view_recallevent"))
    if question is None or agent is None or not may_read:
        messages.warning(request, gettext("This reply answers no message that can be asked again."))
        return redirect("admin:people")
    content, user_id = question.content, question.user_id
    log_row_access(request, Action.TRY, agent, user_id=user_id)
    before = DryRun(agent, reply.created_at, reply=reply.content)
    sides: list[Side] = [(gettext("Before"), before, sources_of(reply))]
    with show_outcome(request):
        without = (question.pk, reply.pk)
        run = dry_run(agent, content, user_id=user_id, without=without)
        sides.append((gettext("Now"), run, _sources(run, user_id, without)))
    form = MessageForm(initial={"content": content, "user_id": user_id})
    return _render(request, agent, form, sides, asked_reply=reply)


def _edited_form(request: HttpRequest, agent: Agent) -> Any:
    """Return the form of the agent's page as it was sent here, or None."""
    if "system_prompt" not in request.POST:
        return None
    form = tenant_site.get_model_admin(Agent).get_form(request, agent, change=True)
    return form(request.POST, instance=copy(agent))


def _sources(run: DryRun, user_id: str | None, without: tuple[UUID, ...] = ()) -> Any:
    """Return the sources of the answer for why.html; None if no language model was asked."""
    if run.prompt is None:
        return None
    ids = [pk for pk in run.prompt.source_ids if pk not in without]
    return with_sources(run.prompt.trace(), ids, agent_id=run.agent.pk, user_id=user_id or "")


def _render(
    request: HttpRequest,
    agent: Agent,
    form: MessageForm,
    sides: Sequence[Side] = (),
    **context: Any,
) -> HttpResponseBase:
    """Return the page: the message, its answers, and the saved questions of the agent."""
    log_access(request, Action.LIST, "saved questions", agent_id=agent.pk)
    newest_first = QuestionAnswer.objects.order_by("-version")
    questions = SavedQuestion.objects.filter(agent_id=agent.pk).order_by("created_at")
    questions = questions.prefetch_related(Prefetch("answers", newest_first))
    return tenant_site.render(
        request,
        "konstruct/try_agent.html",
        title=gettext("Try %(name)s") % {"name": agent.name},
        agent=agent,
        form=form,
        sides=sides,
        questions=questions,
        job=QUESTIONS.jobs([agent.pk]).first(),
        **context,
        is_fullwidth=1,
    )
