"""Saved questions: asked again after each change, by dry runs."""

from typing import Any

import pytest

from konstruct.orchestrator import dry_runs
from konstruct.orchestrator.agents import QUESTIONS, update_agent
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import Agent, ModelCall, QuestionAnswer, SavedQuestion
from konstruct.privacy.erasure.erasing import carry_out
from konstruct.privacy.erasure.messages import delete_messages
from tenants import transaction
from tenants.audit.access_log import Actor
from tenants.audit.models import ActorKind
from tenants.context import tenant_scope
from tenants.jobs import WorkerLost
from tests import database
from tests.jobs import expire_leases
from tests.konstruct.conftest import Program, SendMessage
from tests.konstruct.privacy.erasure.conftest import files_left_alone  # noqa: F401
from tests.servers.llm import Answer, LLMServer


@pytest.fixture
def ada(program: Program) -> Agent:
    return program.agent


def ask(agent: Agent) -> list[QuestionAnswer]:
    dry_runs.enqueue_questions(agent.pk)
    dry_runs.ask_questions(agent.pk)
    return list(QuestionAnswer.objects.order_by("version"))


def test_a_change_without_questions_makes_no_job(ada: Agent) -> None:
    update_agent(ada, persona="Be curt.")
    assert not QUESTIONS.jobs().exists()


def test_a_question_that_is_saved_during_the_work_is_asked_too(
    ada: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry_runs.save_question(ada, content="One?")
    original = dry_runs.dry_run

    def meanwhile(*args: Any, **given: Any) -> Any:
        if SavedQuestion.objects.count() == 1:
            dry_runs.save_question(ada, content="Two?")
            dry_runs.enqueue_questions(ada.pk)
        return original(*args, **given)

    monkeypatch.setattr(dry_runs, "dry_run", meanwhile)
    assert len(ask(ada)) == 1
    assert QUESTIONS.jobs([ada.pk]).exists()
    dry_runs.ask_questions(ada.pk)
    assert QuestionAnswer.objects.count() == 2
    assert not QUESTIONS.jobs().exists()


def test_questions_that_kill_their_workers_fail(
    ada: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(QUESTIONS), "max_attempts", 2)
    dry_runs.save_question(ada, content="Which theme do I like?")
    dry_runs.enqueue_questions(ada.pk)
    for _ in range(2):
        assert QUESTIONS.lease(ada.pk) is not None
        expire_leases()
    dry_runs.ask_questions(ada.pk)
    job = QUESTIONS.jobs([ada.pk]).get()
    assert (job.attempts, job.failed_at is None, job.error_code) == (2, False, WorkerLost.code)
    assert not QuestionAnswer.objects.exists()


def test_answers_of_old_versions_are_deleted(ada: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_runs, "MAX_VERSIONS", 2)
    dry_runs.save_question(ada, content="Who are you?")
    for persona in ("Be curt.", "Be kind.", "Be warm."):
        update_agent(ada, persona=persona)
        ask(ada)
    assert [answer.version for answer in ask(ada)] == [3, 4]


def test_error_of_the_language_model_is_stored_with_the_answer(
    ada: Agent, llm_server: LLMServer
) -> None:
    llm_server.default = Answer({"error": "no"}, status=400)
    dry_runs.save_question(ada, content="Who are you?")
    (answer,) = ask(ada)
    assert "refused" in answer.problem
    assert ModelCall.objects.get().purpose == "saved questions"
    assert not QUESTIONS.jobs().exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("files_left_alone")
def test_questions_and_answers_are_erased_with_their_person(
    program: Program, ada: Agent, send_message: SendMessage
) -> None:
    send_message("My sister lives in Lisbon.")
    for user_id in ("maria", None):
        dry_runs.save_question(ada, content="Where does my sister live?", user_id=user_id)
    ask(ada)
    with database.as_owner(), tenant_scope(program.tenant.id):
        carry_out(request_erasure("maria", by=Actor(ActorKind.PERSON, "1", "eva")))
    assert [*SavedQuestion.objects.values_list("user_id", flat=True)] == [None]
    assert [*QuestionAnswer.objects.values_list("user_id", flat=True)] == [None]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("files_left_alone")
def test_an_answer_is_erased_with_a_message_of_its_prompt(
    program: Program, ada: Agent, send_message: SendMessage
) -> None:
    message = send_message("My sister lives in Lisbon.")
    dry_runs.save_question(ada, content="Where does my sister live?", user_id="maria")
    ask(ada)
    with database.as_owner(), tenant_scope(program.tenant.id), transaction.atomic():
        delete_messages([message, message.reply])
    assert SavedQuestion.objects.exists()
    assert not QuestionAnswer.objects.exists()
