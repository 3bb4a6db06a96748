"""Trying an agent: dry runs in the admin, beside the edited form. Only the log is stored."""

from typing import Any

import pytest
from django.test import Client

from konstruct.llm import client
from konstruct.orchestrator import runner
from konstruct.orchestrator.agents import QUESTIONS, update_agent
from konstruct.orchestrator.dry_runs import ask_questions, save_question
from konstruct.orchestrator.models import Agent, QuestionAnswer, SavedQuestion
from memory.conversations.short_term import clear_window
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program, SendMessage, user_of
from tests.servers.llm import Answer, LLMServer
from tests.stored import row_counts

# The log stores the user, the session the login, and the meter the calls.
MAY_CHANGE = (
    *("audit_accessevent", "orchestrator_modelcall", "orchestrator_dailyusage"),
    *("auth_user", "auth_user_user_permissions", "django_session"),
)


def counts(program: Program) -> dict[str, int]:
    with tenant_scope(program.tenant.id):
        return row_counts(without=MAY_CHANGE)


@pytest.fixture
def program_a(db: None, module_populated: Program) -> Program:
    return module_populated


@pytest.fixture
def address(program_a: Program) -> str:
    return f"/admin/agents/{program_a.agent.pk}/try/"


def edited(person: Client, program: Program, **changes: str) -> dict[str, Any]:
    """Return the form of the agent's page, with changed values."""
    page = person.get(f"/admin/orchestrator/agent/{program.agent.pk}/change/")
    form = page.context["adminform"].form
    values = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in values.items() if value not in (None, False)} | changes


def run(page: Any, side: int = 0) -> Any:
    return page.context["sides"][side][1]


def test_an_agent_answers_with_memories_and_nothing_is_stored(
    program_a: Program, admin: Client, address: str
) -> None:
    clear_window(program_a.tenant.id, program_a.agent.pk, "maria")
    before = counts(program_a)
    assert "This field is required" not in admin.get(f"{address}?user=maria").text
    page = admin.post(address, {"user_id": "maria", "content": "Where does my sister live?"})
    assert "Lisbon" in run(page).reply
    ((_, _, sources),) = page.context["sides"]
    assert any("Lisbon" in hit["content"] for hit in sources["hits"])
    assert counts(program_a) == before
    with tenant_scope(program_a.tenant.id):
        event = AccessEvent.objects.get(action="try")
    assert (user_of(event), event.detail) == ("maria", {})
    nobody = admin.post(address, {"content": "Where does my sister live?"})
    assert "Lisbon" not in run(nobody).reply


def test_the_edited_form_answers_beside_the_agent_and_is_sent_again(
    program_a: Program, admin: Client, address: str
) -> None:
    change = admin.get(f"/admin/orchestrator/agent/{program_a.agent.pk}/change/").text
    assert f'formaction="{address}" formtarget="_blank"' in change
    form = edited(admin, program_a, escalate_on="refund")
    opened = admin.post(address, form)
    assert (len(opened.context["sides"]), len(opened.context["changes"])) == (0, 1)
    assert '<input type="hidden" name="escalate_on" value="refund">' in opened.text
    page = admin.post(address, {**form, "content": "I want a refund"})
    assert run(page).steps == []
    assert "handed to a person (a rule)" in run(page, 1).steps[0]
    with tenant_scope(program_a.tenant.id):
        assert Agent.objects.get(pk=program_a.agent.pk).escalate_on == []


def test_a_form_that_is_equal_or_invalid_is_not_asked(
    program_a: Program, admin: Client, address: str
) -> None:
    same = admin.post(address, {**edited(admin, program_a), "content": "Hello"})
    assert (same.context["changes"], len(same.context["sides"])) == ([], 1)
    wrong = edited(admin, program_a, recall_top_k="500", content="Hello")
    refused = admin.post(address, wrong)
    assert "top_k=500 is more than 100" in refused.text
    assert refused.context["sides"] == []


def test_another_tenants_agent_is_not_tried(
    program_a: Program, program_b: Program, browser: Browser, address: str
) -> None:
    assert browser(program_b.tenant).get(address).status_code == 404
    assert browser(program_b.tenant).post(address, {"content": "Hello"}).status_code == 404


def test_hostile_text_is_shown_as_text(program_a: Program, admin: Client, address: str) -> None:
    hostile = {"user_id": "<b>x", "content": "<script>alert(1)</script> \u202e"}
    page = admin.post(address, hostile)
    assert "<script>alert(1)" not in page.text
    assert "&lt;script&gt;alert(1)" in page.text
    for wrong in ({"content": ""}, {"content": "x" * 100_000}, {"content": "a\0b"},
                  {"content": "x", "user_id": "u" * 300}):  # fmt: skip
        for do in ("", "save"):
            page = admin.post(address, {**wrong, "do": do})
            assert page.context["form"].errors
    with tenant_scope(program_a.tenant.id):
        assert not SavedQuestion.objects.exists()


def test_a_dry_run_passes_through_run_agent(
    program_a: Program, admin: Client, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr(runner, "run_agent", lambda msg, agent, messages=None: f"{agent.name}!")
    page = admin.post(address, {"content": "Hello"})
    assert run(page).reply == "ada!"


def test_refusal_of_the_language_model_is_shown(
    program_a: Program, admin: Client, llm_server: LLMServer, settings: Any, address: str
) -> None:
    client._known_apis.clear()
    settings.LLM_POOL_URL = llm_server.url
    llm_server.default = Answer({"error": "no such model"}, status=400)
    page = admin.post(address, {"content": "Hello"})
    assert "No reply:" in page.text
    assert "The language model refused the request (HTTP 400)." in page.text
    assert "no such model" not in page.text


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
    assert "Version 0" in page
    assert admin.post(f"{questions}ask/").status_code == 302
    assert admin.post(f"{questions}{question.pk}/delete/").status_code == 302
    with tenant_scope(program_a.tenant.id):
        assert not QuestionAnswer.objects.exists()
        actions = AccessEvent.objects.filter(subject="saved question").order_by("pk")
        assert [*actions.values_list("action", flat=True)] == ["create", "delete"]


def test_answers_are_shown_by_version(program_a: Program, admin: Client, address: str) -> None:
    with tenant_scope(program_a.tenant.id):
        save_question(program_a.agent, content="refund, <script>please")
        ask_questions_now(program_a)
        update_agent(program_a.agent, escalate_on=["refund"])
        ask_questions_now(program_a)
    page = admin.get(address)
    (question,) = page.context["questions"]
    assert [answer.version for answer in question.answers.all()] == [2, 0]
    assert "<script>please" not in page.text
    assert "handed to a person (a rule)" in page.text


def ask_questions_now(program: Program) -> None:
    QUESTIONS.enqueue_again(program.agent.pk)
    ask_questions(program.agent.pk)


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
