"""Saved questions of an agent: a table of the answers of each version, with their changes."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.validators import MaxLengthValidator
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import log_access, log_row_access
from konstruct.admin.agents.dry_runs import MAX_FOUND, MAX_MESSAGE_CHARACTERS, TRY, VIEW_PEOPLE
from konstruct.admin.pages import PageForm, show_outcome
from konstruct.orchestrator.agents import QUESTIONS
from konstruct.orchestrator.models import Agent, AgentVersion, QuestionAnswer, SavedQuestion
from konstruct.orchestrator.saved_questions import (
    MAX_EXPECTED,
    MAX_QUESTIONS,
    enqueue_questions,
    save_question,
    version_of,
)
from memory.browse.people import displayed_names, list_users
from memory.conversations.names import fold
from memory.ids import new_id_argument
from tenants import transaction
from tenants.admin.row_forms import NewRowForm
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.exceptions import KonstructError

SHOWN_VERSIONS: Final = 5


class QuestionForm(NewRowForm, PageForm):
    """A question to save."""

    row_model = SavedQuestion

    content = forms.CharField(
        label=_("Question"),
        validators=[MaxLengthValidator(MAX_MESSAGE_CHARACTERS)],
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    user_id = forms.CharField(
        label=_("As the person"),
        required=False,
        strip=False,
        max_length=255,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text=_("The name or the id of a person. Blank: no person."),
    )
    expected = forms.CharField(
        label=_("Expected words"),
        required=False,
        max_length=1000,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text=_("Words or phrases that the answer should have, with commas between them."),
    )

    def __init__(self, *args: Any, may_find: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.may_find = may_find

    def clean_user_id(self) -> str | None:
        """The id of a person, or None. A name is that of one person, and otherwise an id."""
        text: str = self.cleaned_data["user_id"]
        try:
            user_id = new_id_argument("user_id", text) if text.strip() else None
        except KonstructError as error:
            raise forms.ValidationError(str(error)) from error
        if user_id is None or not self.may_find:
            return user_id
        people = {person.user_id: person for person in list_users(containing=text, limit=MAX_FOUND)}
        with_name = [
            person.user_id
            for person in people.values()
            if fold(text) in map(fold, (person.name, *person.names))
        ]
        if user_id in people or not with_name:
            return user_id
        if len(with_name) > 1:
            raise forms.ValidationError(
                gettext("Several people are called %(name)s. Give the id of one: %(ids)s.")
                % {"name": text, "ids": ", ".join(with_name)}
            )
        return with_name[0]

    def clean_expected(self) -> list[str]:
        """The phrases, each once."""
        stripped = (phrase.strip() for phrase in self.cleaned_data["expected"].split(","))
        phrases = list(dict.fromkeys(filter(None, stripped)))
        if len(phrases) > MAX_EXPECTED:
            raise forms.ValidationError(
                gettext("Give at most %(max_expected)s phrases.") % {"max_expected": MAX_EXPECTED}
            )
        return phrases


@tenant_site.page("agents/<uuid:agent_id>/questions/", name="agent_questions", permission=TRY)
def agent_questions(request: HttpRequest, agent_id: UUID) -> HttpResponseBase:
    """The saved questions of an agent, with the answers of its last versions; save one."""
    agent = get_object_or_404(Agent, pk=agent_id)
    may_find = request.user.has_perm(VIEW_PEOPLE)
    form = QuestionForm(request.POST if request.method == "POST" else None, may_find=may_find)
    if request.method == "POST":
        with show_outcome(request, form=form), transaction.atomic():
            if form.is_valid():
                question = save_question(agent, question_id=form.row_id, **form.cleaned_data)
                enqueue_questions(agent.pk)
                log_row_access(request, Action.CREATE, question, after=row_state(question))
        if form.is_valid():
            return redirect("admin:agent_questions", agent.pk)
    log_access(request, Action.LIST, "saved questions", agent_id=agent.pk)
    questions = list(
        SavedQuestion.objects.filter(agent_id=agent.pk).order_by("created_at")[:MAX_QUESTIONS]
    )
    answers = QuestionAnswer.objects.filter(question__in=questions).order_by("-version")
    answers_by_key = {(answer.question_id, answer.version): answer for answer in answers}
    names = displayed_names(question.user_id for question in questions if question.user_id)
    asked_versions = sorted({version for _, version in answers_by_key}, reverse=True)
    current = version_of(agent.pk)
    versions = sorted({current, *asked_versions[: SHOWN_VERSIONS - 1]}, reverse=True)
    times = dict(
        AgentVersion.objects.filter(agent_id=agent.pk, number__in=versions).values_list(
            "number", "created_at"
        )
    )
    return tenant_site.render(
        request,
        "konstruct/agent_questions.html",
        title=gettext("Saved questions of %(name)s") % {"name": agent.name},
        agent=agent,
        form=form,
        row_id=form.row_id,
        versions=[(number, times.get(number), number == current) for number in versions],
        rows=[
            {
                "question": question,
                "name": names.get(question.user_id or "", ""),
                "cells": _cells(
                    [answers_by_key.get((question.pk, number)) for number in versions],
                    [answers_by_key.get((question.pk, number)) for number in asked_versions],
                ),
            }
            for question in questions
        ],
        job=QUESTIONS.jobs([agent.pk]).first(),
        is_full=len(questions) >= MAX_QUESTIONS,
        is_fullwidth=1,
    )


def _cells(
    shown_answers: Sequence[QuestionAnswer | None], answers: Sequence[QuestionAnswer | None]
) -> list[dict[str, Any]]:
    """Return the answers by version, and for each whether it differs from the previous one.

    Args:
        shown_answers: the answers of the versions that are shown, the newest first.
        answers: of all versions, the newest first.
    """
    existing = [answer for answer in answers if answer is not None]
    previous = dict(zip([answer.pk for answer in existing], existing[1:], strict=False))
    cells: list[dict[str, Any]] = []
    for answer in shown_answers:
        older = previous.get(answer.pk) if answer else None
        changed = bool(answer and older) and _result(answer) != _result(older)
        cells.append({"answer": answer, "is_changed": changed})
    return cells


def _result(answer: Any) -> tuple[Any, ...]:
    return (answer.content, answer.steps, bool(answer.problem), answer.is_expected)


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
    return redirect("admin:agent_questions", agent.pk)


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
    return redirect("admin:agent_questions", agent_id)
