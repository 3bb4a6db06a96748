"""Dry runs by REST: decisions of a channel, a draft beside the agent, and nothing stored."""

from typing import Any

import pytest

from konstruct.orchestrator.models import Agent, ModelCall
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program, user_of
from tests.servers.llm import Answer, LLMServer
from tests.stored import row_counts

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


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"content": " "}, ["content"]),
        ({"content": "a\0"}, ["content"]),
        ({"content": "x" * 100_000}, ["content"]),
        ({"content": "x", "user_id": "u" * 300}, ["user_id"]),
        ({"content": "x", "draft": {"name": "eve"}}, ["draft.name"]),
        ({"content": "x", "draft": {"recall_top_k": 0}}, ["draft.recall_top_k"]),
        ({"content": "x", "draft": {"tools": ["rm"]}}, ["draft.tools.0"]),
        ({"content": "x", "agent": "ada"}, ["agent"]),
    ],
)
def test_invalid_dry_run_names_the_field(
    program_a: Program, body: dict[str, Any], fields: list[str]
) -> None:
    answer = dry_run(program_a, **body)
    assert (answer.status_code, answer.json()["type"]) == (
        *(400, "urn:konstruct:problem:invalid-fields"),
    )  # fmt: skip
    assert [error["field"] for error in answer.json()["errors"]] == fields


def test_a_draft_that_contradicts_itself_is_refused(program_a: Program) -> None:
    answer = dry_run(program_a, draft={"recall_open_at": 0.1, "recall_keep_at": 0.5})
    assert (answer.status_code, answer.json()["type"]) == (
        *(422, "urn:konstruct:problem:contradictory-fields"),
    )  # fmt: skip


def test_a_language_model_that_hangs_is_waited_for_as_for_a_reply(
    program_a: Program, model: LLMServer, settings: Any
) -> None:
    settings.LLM_TIMEOUT = 0.2
    model.default = Answer({"content": "Too late."}, wait=True)
    before = rows(program_a)
    answer = dry_run(program_a)
    assert answer.status_code == 200
    assert answer.json()["live"]["reply"] == ""
    assert "0.2 seconds" in answer.json()["live"]["problem"]
    assert rows(program_a) == before
    with tenant_scope(program_a.tenant.id):
        assert [*ModelCall.objects.values_list("outcome", flat=True)] == ["failed"]
