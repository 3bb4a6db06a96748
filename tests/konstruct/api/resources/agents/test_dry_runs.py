"""Dry runs by REST: decisions of a channel, a draft beside the agent, and nothing stored."""

from typing import Any

import pytest

from konstruct.orchestrator.models import Agent, ModelCall
from konstruct.orchestrator.pipeline import trials
from konstruct.orchestrator.pipeline.dry_run import HOLD_STEP, MAX_MESSAGES
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tenants.limits.quotas import Quota
from tests.konstruct.conftest import Program
from tests.konstruct.metered import metered_call
from tests.konstruct.orchestrator.test_quotas import limit
from tests.servers.llm import Answer, LLMServer
from tests.stored import row_counts

LOGGED = ("audit_accessevent", "orchestrator_modelcall", "orchestrator_dailyusage")
HOSTILE = "\u202e<script>alert(1)</script>{{ system }} {% load x %} \U0001f469\u200d\U0001f467"


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
    assert (event.subject, event.agent_id, event.user_id, event.detail["query"]) == (
        *("agent", program_a.agent.pk, "maria", "Who are you?"),
    )  # fmt: skip


def test_dry_run_continues_a_conversation_as_in_a_channel(program_a: Program) -> None:
    first = dry_run(program_a, "talk to a human", user_id="maria").json()
    assert first["live"]["recall"] is None
    second = dry_run(program_a, "Hello?", conversation=first["conversation"]).json()
    assert (second["user_id"], second["live"]["reply"]) == ("maria", "")
    assert second["live"]["steps"] == [HOLD_STEP]


def test_dry_run_of_a_draft_answers_and_saves_nothing(program_a: Program, model: LLMServer) -> None:
    draft = {"persona": "A pirate.", "escalate_on": ["refund"], "model_tier": "fast"}
    answer = dry_run(program_a, "I want a refund", draft=draft).json()
    assert answer["changes"] == ["persona", "escalate_on"]
    assert answer["draft"]["steps"] == [
        "It would be handed to a person (a rule). The message says 'refund'."
    ]
    assert answer["live"]["reply"] == "Noted."
    goes_on = dry_run(program_a, "Hello?", draft=draft, conversation=answer["conversation"]).json()
    assert goes_on["draft"]["steps"] == [HOLD_STEP]
    assert goes_on["live"]["reply"] == "Noted."
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
        ({"content": "x", "conversation": "forged"}, ["conversation"]),
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


def test_a_conversation_is_of_its_key_its_agent_and_its_person(
    program_a: Program, program_b: Program
) -> None:
    conversation = dry_run(program_a, user_id="maria").json()["conversation"]
    other_key = program_a.with_key()
    for program in (program_b, other_key):
        refused = dry_run(program, conversation=conversation)
        assert [error["field"] for error in refused.json()["errors"]] == ["conversation"]
    other = dry_run(program_a, user_id="theo", conversation=conversation)
    assert [error["field"] for error in other.json()["errors"]] == ["user_id"]
    assert dry_run(program_a, user_id="maria", conversation=conversation).status_code == 200


def test_an_old_conversation_has_ended(program_a: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = dry_run(program_a).json()["conversation"]
    monkeypatch.setattr(trials, "MAX_AGE_SECONDS", -1)
    assert dry_run(program_a, conversation=conversation).status_code == 400


def test_a_full_conversation_is_not_continued(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = dry_run(program_a, "talk to a human").json()["conversation"]
    for _ in range(MAX_MESSAGES - 2):
        conversation = dry_run(program_a, conversation=conversation).json()["conversation"]
    assert dry_run(program_a, conversation=conversation).json()["conversation"] is None


def test_html_in_text_is_returned_as_text(program_a: Program, model: LLMServer) -> None:
    model.default = Answer({"content": HOSTILE})
    answer = dry_run(program_a, HOSTILE, draft={"persona": HOSTILE}, user_id="<script>")
    document = answer.json()
    assert (document["live"]["reply"], document["draft"]["reply"]) == (HOSTILE, HOSTILE)
    assert document["user_id"] == "<script>"
    goes_on = dry_run(program_a, HOSTILE, conversation=document["conversation"])
    assert goes_on.json()["live"]["reply"] == HOSTILE


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


def test_a_dry_run_takes_no_longer_than_a_reply_may(
    program_a: Program, model: LLMServer, settings: Any
) -> None:
    settings.TASK_TIME_LIMIT = 0
    answer = dry_run(program_a).json()
    assert answer["live"]["problem"] == "The dry run takes longer than a reply may."
    assert model.requests == []


def test_an_error_of_the_language_model_is_shown(program_a: Program, model: LLMServer) -> None:
    model.default = Answer({"error": "no"}, status=400)
    assert "refused" in dry_run(program_a).json()["live"]["problem"]


def test_a_quota_that_is_used_up_refuses_dry_runs_as_it_does_replies(
    program_a: Program, model: LLMServer
) -> None:
    limit(program_a, Quota.TOKENS, hard=1)
    with tenant_scope(program_a.tenant.id):
        metered_call()
    refused = dry_run(program_a)
    assert (refused.status_code, refused.json()["quota"]) == (429, "tokens")
    assert model.requests == []
