"""Saved questions of an agent: a table of the answers of each version, with their changes."""

from itertools import pairwise
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext

from konstruct.admin.access import log_row_access
from konstruct.orchestrator.agents import QUESTIONS
from konstruct.orchestrator.models import Agent, QuestionAnswer, SavedQuestion
from konstruct.orchestrator.saved_questions import enqueue_questions, version_of
from memory.browse.people import displayed_names
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action

TRY: Final = "audit.try_agent"
SHOWN_VERSIONS: Final = 5


def answers_by_version(agent: Agent) -> dict[str, Any]:
    """Return the saved questions with the answers of the last versions, for try_agent.html."""
    questions = SavedQuestion.objects.filter(agent_id=agent.pk).order_by("created_at")
    answers = {
        (answer.question_id, answer.version): answer
        for answer in QuestionAnswer.objects.filter(question__in=questions)
    }
    asked_versions = {version for _, version in answers}
    current = version_of(agent.pk)
    versions = sorted({current, *asked_versions}, reverse=True)
    names = displayed_names(question.user_id for question in questions if question.user_id)
    rows = []
    for question in questions:
        cells = [answers.get((question.pk, version)) for version in versions]
        existing = list(filter(None, cells))
        changed = {new.pk for new, old in pairwise(existing) if _result(new) != _result(old)}
        name = names.get(question.user_id or "", "")
        rows.append((question, name, cells[:SHOWN_VERSIONS], changed))
    return {
        "versions": versions[:SHOWN_VERSIONS],
        "current": current,
        "questions": rows,
        "job": QUESTIONS.jobs([agent.pk]).first(),
    }


def _result(answer: QuestionAnswer) -> tuple[Any, ...]:
    return (answer.content, answer.steps, bool(answer.problem))


@tenant_site.post_page(
    "agents/<uuid:agent_id>/questions/ask/", name="ask_questions", permission=TRY
)
def ask(request: HttpRequest, agent_id: UUID) -> HttpResponseBase:
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
    "agents/<uuid:agent_id>/questions/<uuid:question_id>/delete/",
    name="delete_question",
    permission=TRY,
)
def delete(request: HttpRequest, agent_id: UUID, question_id: UUID) -> HttpResponseBase:
    """Delete a question with its answers."""
    question = get_object_or_404(SavedQuestion, pk=question_id, agent_id=agent_id)
    with transaction.atomic():
        log_row_access(request, Action.DELETE, question, before=row_state(question))
        question.delete()
    return redirect("admin:try_agent", agent_id)
