"""Saved questions in the admin: a table of questions and versions."""

import pytest
from django.test import Client

from konstruct.orchestrator.agents import QUESTIONS, update_agent
from konstruct.orchestrator.dry_runs import ask_questions, save_question
from konstruct.orchestrator.models import QuestionAnswer, SavedQuestion
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program, SendMessage


@pytest.fixture
def address(program_a: Program) -> str:
    return f"/admin/agents/{program_a.agent.pk}/try/"


@pytest.fixture
def questions(program_a: Program) -> str:
    return f"/admin/agents/{program_a.agent.pk}/questions/"


def test_a_question_is_saved_asked_and_deleted(
    program_a: Program, admin: Client, send_message: SendMessage, address: str, questions: str
) -> None:
    send_message(program_a, "Hello.", answered=False)
    form = {"content": "Who are you?", "user_id": "maria", "do": "save"}
    assert admin.post(address, form).status_code == 302
    with tenant_scope(program_a.tenant.id):
        question = SavedQuestion.objects.get()
        assert (question.content, question.user_id) == ("Who are you?", "maria")
        assert QUESTIONS.jobs([program_a.agent.pk]).exists()
        ask_questions(program_a.agent.pk)
    page = admin.get(address).text
    assert "Who are you?" in page
    assert "Before version 1" in page
    assert admin.post(f"{questions}ask/").status_code == 302
    assert admin.post(f"{questions}{question.pk}/delete/").status_code == 302
    with tenant_scope(program_a.tenant.id):
        assert not QuestionAnswer.objects.exists()
        actions = AccessEvent.objects.filter(subject="saved question").order_by("pk")
        assert [*actions.values_list("action", flat=True)] == ["create", "delete"]


def test_answers_that_changed_are_marked(program_a: Program, admin: Client, address: str) -> None:
    with tenant_scope(program_a.tenant.id):
        save_question(program_a.agent, content="refund, <script>please")
        ask_questions_now(program_a)
        update_agent(program_a.agent, escalate_on=["refund"])
        ask_questions_now(program_a)
        update_agent(program_a.agent, escalate_on=["refund", "x"])
        ask_questions_now(program_a)
    page = admin.get(address)
    ((_, _, answers, changed),) = page.context["questions"]
    assert [answer.pk in changed for answer in answers] == [False, True, False]
    assert "<script>please" not in page.text
    assert "handed to a person (a rule)" in page.text


def ask_questions_now(program: Program) -> None:
    QUESTIONS.enqueue_again(program.agent.pk)
    ask_questions(program.agent.pk)


@pytest.mark.parametrize(
    "form",
    [{"content": ""}, {"content": "a\0"}, {"content": "x" * 100_000},
     {"content": "x", "user_id": "u" * 300}],
)  # fmt: skip
def test_invalid_saved_question_is_refused(
    program_a: Program, admin: Client, address: str, form: dict[str, str]
) -> None:
    page = admin.post(address, {**form, "do": "save"})
    assert page.context["form"].errors
    with tenant_scope(program_a.tenant.id):
        assert not SavedQuestion.objects.exists()


def test_saved_questions_require_the_permission_to_try_agents(
    program_a: Program, program_b: Program, browser: Browser, address: str, questions: str
) -> None:
    with tenant_scope(program_a.tenant.id):
        question = save_question(program_a.agent, content="Who are you?")
    auditor, stranger = browser(program_a.tenant, "view_agent"), browser(program_b.tenant)
    for path in (address, f"{questions}ask/", f"{questions}{question.pk}/delete/"):
        assert auditor.post(path, {"content": "x", "do": "save"}).status_code == 403
        assert stranger.post(path, {"content": "x", "do": "save"}).status_code == 404
    assert browser(program_a.tenant, "try_agent").get(address).status_code == 200
    with tenant_scope(program_a.tenant.id):
        assert SavedQuestion.objects.get() == question
