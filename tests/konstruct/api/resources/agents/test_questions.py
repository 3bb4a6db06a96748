"""Saved questions by REST: saved once, asked after each change, answered by version."""

from typing import Any

import pytest

from konstruct.orchestrator import dry_runs
from konstruct.orchestrator.agents import QUESTIONS, update_agent
from konstruct.orchestrator.models import Agent, ModelCall, SavedQuestion
from tenants.audit.models import AccessEvent, about_people
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program, user_of
from tests.servers.llm import LLMServer
from tests.stored import row_counts

HOSTILE = "\u202e<script>alert(1)</script>{{ system }} \U0001f469\u200d\U0001f467"


def address(program: Program, *parts: str) -> str:
    return "/".join([f"/api/v1/agents/{program.agent.pk}/questions", *parts, ""])


def save(program: Program, content: str = "Who are you?", **fields: Any) -> Any:
    headers = fields.pop("headers", {})
    return program.post(address(program), {"content": content, **fields}, headers=headers)


def work(program: Program) -> None:
    with tenant_scope(program.tenant.id):
        dry_runs.ask_questions(program.agent.pk)


def run(program: Program) -> tuple[str, int]:
    document = program.get(address(program, "run")).json()
    return document["state"], document["version"]


def test_a_question_is_saved_asked_and_deleted(program_a: Program) -> None:
    saved = save(program_a, user_id="maria")
    question = saved.json()
    assert (saved.status_code, saved.headers["Location"]) == (201, question["url"])
    assert (question["content"], question["user_id"]) == ("Who are you?", "maria")
    assert program_a.get(question["url"]).json() == question
    assert program_a.get(address(program_a)).json()["results"] == [question]
    assert run(program_a) == ("queued", 0)
    work(program_a)
    assert run(program_a) == ("answered", 0)
    (answer,) = program_a.get(address(program_a, "answers")).json()["results"]
    assert (answer["question_id"], answer["version"]) == (question["id"], 0)
    assert (answer["problem"], answer["user_id"]) == ("", "maria")
    assert answer["content"]
    assert program_a.request("DELETE", question["url"]).status_code == 204
    assert program_a.request("DELETE", question["url"]).status_code == 404
    assert program_a.get(address(program_a, "answers")).json()["results"] == []
    with tenant_scope(program_a.tenant.id):
        events = AccessEvent.objects.filter(about_people("maria"), subject="saved question")
        events = events.exclude(action="list").order_by("pk")
        assert [*events.values_list("action", flat=True)] == ["create", "view", "delete"]


def test_each_changed_version_answers_and_its_answers_are_found(program_a: Program) -> None:
    save(program_a, "I want a refund")
    work(program_a)
    with tenant_scope(program_a.tenant.id):
        update_agent(program_a.agent, escalate_on=["refund"])
    assert run(program_a) == ("queued", 2)
    work(program_a)
    answers = program_a.get(address(program_a, "answers")).json()["results"]
    assert [answer["version"] for answer in answers] == [2, 0]
    assert answers[0]["steps"] == [
        "It would be handed to a person (a rule). The message says 'refund'."
    ]
    (found,) = program_a.get(f"{address(program_a, 'answers')}?version=2").json()["results"]
    assert found == answers[0]
    other = f"{address(program_a, 'answers')}?question_id={program_a.agent.pk}"
    assert program_a.get(other).json()["results"] == []


def test_saved_questions_are_repeated_on_request(program_a: Program) -> None:
    save(program_a)
    work(program_a)
    answer = program_a.post(address(program_a, "run"), {})
    assert (answer.status_code, answer.json()["state"]) == (202, "queued")
    with tenant_scope(program_a.tenant.id):
        for _ in range(QUESTIONS.max_attempts):
            QUESTIONS.record_failure(program_a.agent.pk, RuntimeError("no"))
    failed = program_a.get(address(program_a, "run")).json()
    assert (failed["state"], bool(failed["last_error"])) == ("failed", True)
    assert program_a.post(address(program_a, "run"), {}).json()["state"] == "queued"


def test_the_same_key_saves_one_question(program_a: Program) -> None:
    headers = {"Idempotency-Key": "k1"}
    first, again = (save(program_a, headers=headers) for _ in range(2))
    assert first.json() == again.json()
    assert save(program_a, "Another?", headers=headers).status_code == 422
    with tenant_scope(program_a.tenant.id):
        assert SavedQuestion.objects.count() == 1


def test_question_beyond_the_maximum_is_refused(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dry_runs, "MAX_QUESTIONS", 1)
    save(program_a)
    refused = save(program_a, "And you?")
    kind = "urn:konstruct:problem:too-many-questions"
    assert (refused.status_code, refused.json()["type"]) == (409, kind)
    with tenant_scope(program_a.tenant.id):
        assert SavedQuestion.objects.count() == 1


LOGGED = ("audit_accessevent", "orchestrator_modelcall", "orchestrator_dailyusage")


@pytest.fixture
def model(llm_server: LLMServer, settings: Any) -> LLMServer:
    settings.LLM_POOL_URL = llm_server.url
    return llm_server


def dry_run(program: Program, content: str = "Hello", **fields: Any) -> Any:
    address = f"/api/v1/agents/{program.agent.pk}/dry-runs/"
    return program.post(address, {"content": content, **fields})


def rows(program: Program) -> dict[str, int]:
    with tenant_scope(program.tenant.id):
        return row_counts(without=LOGGED)


def test_dry_run_answers_and_stores_only_its_count(program_a: Program, model: LLMServer) -> None:
    before = rows(program_a)
    answer = dry_run(program_a, "Who are you?", user_id="maria").json()
    assert (answer["user_id"], answer["changes"], answer["draft"]) == ("maria", [], None)
    assert (answer["live"]["reply"], answer["live"]["agent"]) == ("Noted.", "ada")
    assert (answer["live"]["steps"], answer["live"]["problem"]) == ([], "")
    assert answer["live"]["recall"]["query"] == "Who are you?"
    assert "Who are you?" in str(answer["live"]["recall"]["prompt"])
    assert rows(program_a) == before
    with tenant_scope(program_a.tenant.id):
        (call,) = ModelCall.objects.all()
        event = AccessEvent.objects.get(action="try")
    assert (call.purpose, call.outcome, call.agent_id) == ("dry run", "done", program_a.agent.pk)
    assert (event.subject, event.agent_id, user_of(event), event.detail) == (
        *("agent", program_a.agent.pk, None, {}),  # "maria" has no row
    )  # fmt: skip


def test_dry_run_of_a_draft_answers_and_saves_nothing(program_a: Program, model: LLMServer) -> None:
    draft = {"persona": "A pirate.", "escalate_on": ["refund"], "model_tier": "fast"}
    answer = dry_run(program_a, "I want a refund", draft=draft).json()
    assert answer["changes"] == ["persona", "escalate_on"]
    assert answer["draft"]["steps"] == [
        "It would be handed to a person (a rule). The message says 'refund'."
    ]
    assert answer["live"]["reply"] == "Noted."
    with tenant_scope(program_a.tenant.id):
        agent = Agent.objects.get(pk=program_a.agent.pk)
    assert (agent.persona, agent.escalate_on) == ("", [])
