"""Try it: what an agent answers, also by its edited form, and what its memory recalls.

Only saved questions are stored. The agent's page sends its form here without saving it, and the
page sends it again with each message.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.validators import MaxLengthValidator
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext, gettext_lazy as _

from konstruct.admin import access, pages
from konstruct.admin.agents import differences
from konstruct.admin.sources import left_out_context, memory_context, sources_of, with_sources
from konstruct.orchestrator import dry_runs, runner
from konstruct.orchestrator.agents import QUESTIONS, settings_of
from konstruct.orchestrator.models import Agent, QuestionAnswer, SavedQuestion
from memory.context.manager import search_memory
from memory.context.prompt import BELOW_MINIMUM
from memory.models import MemoryEntry, Message
from memory.recall import Hit
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.context import required_tenant_id

TRY: Final = "audit.try_agent"


@tenant_site.post_page("agents/<uuid:agent_id>/questions/ask/", permission=TRY)
def ask_questions(request: HttpRequest, agent_id: UUID) -> HttpResponseBase:
    """Have a worker ask the questions again."""
    agent = get_object_or_404(Agent, pk=agent_id)
    with transaction.atomic():
        dry_runs.enqueue_questions(agent.pk)
        access.log_row_access(request, Action.TRY, agent, "saved questions")
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
        access.log_row_access(request, Action.DELETE, question, before=row_state(question))
        question.delete()
    return redirect("admin:try_agent", agent_id)


MAX_MESSAGE_CHARACTERS: Final = 32_768

Side = tuple[str, dry_runs.DryRun, dict[str, Any] | None]
"""One of the answers side by side: its title, the answer, and its sources for why.html."""


class MessageForm(pages.PageForm):
    """A message to an agent, and the person who writes it; a question if it is saved."""

    content = forms.CharField(
        label=_("Message"),
        validators=[MaxLengthValidator(MAX_MESSAGE_CHARACTERS)],
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    user_id = pages.UserField(
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
        with pages.show_outcome(request, form=form), transaction.atomic():
            if form.is_valid():
                question = dry_runs.save_question(agent, **form.cleaned_data)
                dry_runs.enqueue_questions(agent.pk)
                access.log_row_access(request, Action.CREATE, question, after=row_state(question))
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
        access.log_row_access(request, Action.TRY, agent, user_id=user_id)
        with pages.show_outcome(request, form=form):
            for title, asked in agents.items():
                run = dry_runs.dry_run(asked, content, user_id=user_id)
                sides.append((title, run, _sources(run, user_id)))
    return _render(request, agent, form, sides, edited=edited, changes=changes)


@tenant_site.post_page("messages/<uuid:reply_id>/ask-again/", permission=TRY)
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
    access.log_row_access(request, Action.TRY, agent, user_id=user_id)
    before = dry_runs.DryRun(agent, reply.created_at, reply=reply.content)
    sides: list[Side] = [(gettext("Before"), before, sources_of(reply))]
    with pages.show_outcome(request):
        without = (question.pk, reply.pk)
        run = dry_runs.dry_run(agent, content, user_id=user_id, without=without)
        sides.append((gettext("Now"), run, _sources(run, user_id, without)))
    form = MessageForm(initial={"content": content, "user_id": user_id})
    return _render(request, agent, form, sides, asked_reply=reply)


def _edited_form(request: HttpRequest, agent: Agent) -> Any:
    """Return the form of the agent's page as it was sent here, or None."""
    if "system_prompt" not in request.POST:
        return None
    form = tenant_site.get_model_admin(Agent).get_form(request, agent, change=True)
    return form(request.POST, instance=copy(agent))


def _sources(run: dry_runs.DryRun, user_id: str | None, without: tuple[UUID, ...] = ()) -> Any:
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
    access.log_access(request, Action.LIST, "saved questions", agent_id=agent.pk)
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


# A question to the memory of an agent, with its facts.
MAX_QUESTION: Final = 8_192
MAX_FACTS: Final = 10


class RecallForm(pages.PageForm):
    """A question to the memory that an agent has of a person."""

    agent = forms.ModelChoiceField(Agent.objects.all(), label=_("Agent"), empty_label=None)
    user = pages.UserField(is_known=True, label=_("Person"))
    user.required = True
    q = forms.CharField(label=_("Question"), max_length=MAX_QUESTION)


@tenant_site.page("memories/", permission="audit.recall_memories", title=_("Memories"))
def memories(request: HttpRequest) -> dict[str, Any]:
    """Recall for a question what an agent would recall for its reply, with the reasons."""
    form = RecallForm(request.GET if "q" in request.GET else None)
    context: dict[str, Any] = {}
    if form.is_valid():
        agent, user_id, query = (form.cleaned_data[name] for name in ("agent", "user", "q"))
        access.log_access(request, Action.SEARCH, "memories", agent_id=agent.pk, user_id=user_id)
        with_facts = request.user.has_perm("memory.view_memoryentry")
        context = _recall(agent, user_id, query, with_facts=with_facts)
    return {"form": form, **context}


def _recall(agent: Agent, user_id: str, query: str, *, with_facts: bool) -> dict[str, Any]:
    """Return what the agent recalls, by its reranker if it has one, and the omitted memories."""
    searched = search_memory(
        required_tenant_id(),
        user_id,
        query,
        agent_id=agent.pk,
        policy=agent.recall_policy,
        facts=MAX_FACTS if with_facts else 0,
        gate=agent.recall_policy.gate,
        shared=True,
    )
    recalled = searched.messages
    found = [*(searched.facts or ()), *(recalled.hits if recalled else ())]
    texts = [memory.content for memory in found]
    reranking = runner.rank(agent, query, texts, {"agent_id": agent.pk})
    kept, ranks = found, {}
    if reranking is not None:
        kept = reranking.kept(found)
        ranks = {
            str(memory.message_id if isinstance(memory, Hit) else memory.pk): (place, score)
            for place, (memory, score) in enumerate(reranking.ranked(found), start=1)
        }
    refused = [memory for memory in found if memory not in kept]
    hits = [memory_context(asdict(hit), asdict(hit)) for hit in kept if isinstance(hit, Hit)]
    cut = [
        *(asdict(hit) | {"reason": BELOW_MINIMUM} for hit in refused if isinstance(hit, Hit)),
        *map(asdict, recalled.cut if recalled else ()),
    ]
    left_out = left_out_context(cut)
    for memory in (*hits, *left_out):
        memory |= {"user_id": user_id, "agent_name": agent.name}
        memory["reranked"] = ranks.get(memory["message_id"])
    return {
        "is_searched": True,
        "hits": hits,
        "cut": left_out,
        "facts": [
            (fact, ranks.get(str(fact.pk)), fact in refused)
            for fact in (*kept, *refused)
            if isinstance(fact, MemoryEntry)
        ],
        "reranker": reranking,
    }
