"""Saved questions in the admin: a table of questions and versions."""

from collections.abc import Callable

import pytest
from django.test import Client

from konstruct.orchestrator.agents import QUESTIONS, update_agent
from konstruct.orchestrator.models import QuestionAnswer, SavedQuestion
from konstruct.orchestrator.saved_questions import ask_questions, save_question
from memory.conversations.importing import ImportedTurn, import_turns
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program


@pytest.fixture
def address(program_a: Program) -> str:
    return f"/admin/agents/{program_a.agent.pk}/questions/"


def test_a_question_is_saved_asked_and_deleted(
    program_a: Program, browser: Callable[..., Client], address: str
) -> None:
    person = browser(program_a.tenant)
    form = {"content": "Who are you?", "user_id": "maria", "expected": "Ada, , Ada,AI"}
    assert person.post(address, form).status_code == 302
    with tenant_scope(program_a.tenant.id):
        question = SavedQuestion.objects.get()
        assert (question.user_id, question.expected) == ("maria", ["Ada", "AI"])
        assert QUESTIONS.jobs([program_a.agent.pk]).exists()
        ask_questions(program_a.agent.pk)
    page = person.get(address).text
    assert "not as expected" in page
    assert "Before version 1" in page
    assert person.post(f"{address}ask/").status_code == 302
    assert person.post(f"{address}{question.pk}/delete/").status_code == 302
    with tenant_scope(program_a.tenant.id):
        assert not QuestionAnswer.objects.exists()
        actions = AccessEvent.objects.filter(subject="saved question").order_by("pk")
        assert [*actions.values_list("action", flat=True)] == ["create", "delete"]


def test_answers_that_changed_are_marked(
    program_a: Program, browser: Callable[..., Client], address: str
) -> None:
    with tenant_scope(program_a.tenant.id):
        save_question(program_a.agent, content="refund, <script>please")
        ask_questions_now(program_a)
        update_agent(program_a.agent, escalate_on=["refund"])
        ask_questions_now(program_a)
        update_agent(program_a.agent, escalate_on=["refund", "x"])
        ask_questions_now(program_a)
    page = browser(program_a.tenant).get(address)
    (row,) = page.context["rows"]
    assert [cell["is_changed"] for cell in row["cells"]] == [False, True, False]
    assert "<script>please" not in page.text
    assert "handed to a person (a rule)" in page.text


def ask_questions_now(program: Program) -> None:
    QUESTIONS.enqueue_again(program.agent.pk)
    ask_questions(program.agent.pk)


def test_a_person_is_shown_and_found_by_name(
    program_a: Program, browser: Callable[..., Client], address: str
) -> None:
    agent_id, tenant_id = program_a.agent.pk, program_a.tenant.id
    named = [("U07", "María Lopez"), ("U08", "Rex"), ("U09", "rex")]
    turns = [
        ImportedTurn(
            agent_id=agent_id, user_id=user_id, thread_id=user_id, role="user", content="Hi.",
            external_id=user_id, name=name, created_at=None,
        )
        for user_id, name in named
    ]  # fmt: skip
    with tenant_scope(tenant_id):
        import_turns(tenant_id, turns)
    person = browser(program_a.tenant)
    assert person.post(address, {"content": "x", "user_id": "maria LOPEZ"}).status_code == 302
    with tenant_scope(tenant_id):
        assert SavedQuestion.objects.get().user_id == "U07"
    page = person.get(address)
    assert [row["name"] for row in page.context["rows"]] == ["María Lopez"]
    assert '<bdi class="k-strong">María Lopez</bdi>' in page.text
    refused = person.post(address, {"content": "x", "user_id": "Rex"}).context["form"]
    assert refused.errors["user_id"] == [
        "Several people are called Rex. Give the id of one: U08, U09."
    ]
    assert person.post(address, {"content": "x", "user_id": "U08"}).status_code == 302
    assert person.post(address, {"content": "x", "user_id": "new"}).status_code == 302


@pytest.mark.parametrize(
    "form",
    [{"content": ""}, {"content": "a\0"}, {"content": "x" * 100_000},
     {"content": "x", "expected": "a,b,c,d,e,f,g,h,i,j,k"}, {"content": "x", "user_id": "u" * 300}],
)  # fmt: skip
def test_invalid_saved_question_is_refused(
    program_a: Program, browser: Callable[..., Client], address: str, form: dict[str, str]
) -> None:
    assert browser(program_a.tenant).post(address, form).context["form"].errors
    with tenant_scope(program_a.tenant.id):
        assert not SavedQuestion.objects.exists()


def test_saved_questions_require_the_permission_to_try_agents(
    program_a: Program, program_b: Program, browser: Callable[..., Client], address: str
) -> None:
    with tenant_scope(program_a.tenant.id):
        question = save_question(program_a.agent, content="Who are you?")
    auditor, stranger = browser(program_a.tenant, "view_agent"), browser(program_b.tenant)
    for path in (address, f"{address}ask/", f"{address}{question.pk}/delete/"):
        assert auditor.post(path, {"content": "x"}).status_code == 403
        assert stranger.post(path, {"content": "x"}).status_code == 404
    assert browser(program_a.tenant, "try_agent").get(address).status_code == 200
    with tenant_scope(program_a.tenant.id):
        assert SavedQuestion.objects.get() == question
