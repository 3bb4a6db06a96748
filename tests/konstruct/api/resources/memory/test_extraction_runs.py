"""Extraction runs by REST: preview, replay, compare, apply, roll back."""

import json
from typing import Any

import pytest

from konstruct.orchestrator.extraction.fact_requests import NO_MODEL
from konstruct.orchestrator.models import Agent, ExtractionRun, RunState
from memory.models import Message
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.api.resources.memory.facts.keeping import FACTS
from tests.konstruct.conftest import Program
from tests.konstruct.extracted import add_run
from tests.konstruct.orchestrator.extraction.conftest import fact
from tests.servers.llm import Answer, LLMServer

RUNS = "/api/v1/extraction-runs/"


@pytest.fixture(autouse=True)
def model(llm_server: LLMServer, settings: Any) -> LLMServer:
    """A language model that finds one fact in the message of `preview`, for a review."""
    settings.LLM_POOL_URL = llm_server.url
    found = fact("Oslo", "I live in Oslo", subject="Laura")
    llm_server.default = Answer({"content": json.dumps({"facts": [found]})})
    return llm_server


def preview(program: Program) -> dict[str, Any]:
    """Send a message, and preview the facts of its conversation."""
    program.send("I live in Oslo.", user_id="maria", thread_id="t1", name="Maria")
    body = {"agent": "ada", "user_id": "maria", "thread_id": "t1"}
    answer = program.post(RUNS, body)
    assert answer.status_code == 201, answer.content
    assert answer.headers["Location"] == answer.json()["url"]
    return dict(answer.json())


def proposed(program: Program) -> list[str]:
    found = program.get(f"{FACTS}?state=proposed").json()["results"]
    return [fact["value"] for fact in found]


def test_preview_shows_changes_and_stores_none(program_a: Program) -> None:
    run = preview(program_a)
    (candidate,) = run["candidates"]
    assert (run["state"], candidate["slot"], candidate["value"]) == ("preview", "home_city", "Oslo")
    assert run["requested_by"].startswith("program:")
    assert proposed(program_a) == []
    (listed,) = program_a.get(f"{RUNS}?state=preview&user_id=maria").json()["results"]
    assert (listed["id"], listed["result"]["candidates"]) == (run["id"], 1)
    assert "output" not in listed


def test_a_run_is_applied_and_rolled_back_as_a_unit(program_a: Program) -> None:
    run = preview(program_a)
    applied = program_a.post(f"{run['url']}apply/", {}).json()
    assert (applied["state"], proposed(program_a)) == ("applied", ["Oslo"])
    again = program_a.post(f"{run['url']}apply/", {})
    assert (again.status_code, again.json()["type"]) == (409, "urn:konstruct:problem:wrong-state")
    rolled = program_a.post(f"{run['url']}roll-back/", {}).json()
    assert (rolled["state"], rolled["result"]["rolled_back"]["removed"]) == ("rolled_back", 1)
    assert proposed(program_a) == []
    assert program_a.post(f"{run['url']}roll-back/", {}).status_code == 409
    with tenant_scope(program_a.tenant.id):
        decided = AccessEvent.objects.filter(action="decide", subject="extraction run")
        decisions = [event.detail["decision"] for event in decided.order_by("id")]
    assert decisions == ["apply", "roll_back"]


def test_the_access_log_quotes_no_message_of_a_run(program_a: Program) -> None:
    run = preview(program_a)
    program_a.post(f"{run['url']}replay/", {})
    program_a.post(f"{run['url']}apply/", {})
    program_a.post(f"{run['url']}roll-back/", {})
    with tenant_scope(program_a.tenant.id):
        events = AccessEvent.objects.filter(subject="extraction run").order_by("id")
        assert [event.action for event in events] == ["create", "create", "decide", "decide"]
        logged = events[0].detail["after"]
        assert logged["message_ids"] == run["message_ids"]
        assert not [event.detail for event in events if "Oslo" in json.dumps(event.detail)]


def test_key_cannot_confirm_proposals_of_its_run(program_a: Program) -> None:
    run = preview(program_a)
    program_a.post(f"{run['url']}apply/", {})
    (fact,) = program_a.get(f"{FACTS}?state=proposed").json()["results"]
    answer = program_a.post(f"{fact['url']}confirm/", {})
    kind = "urn:konstruct:problem:own-proposal"
    assert (answer.status_code, answer.json()["type"]) == (409, kind)
    assert program_a.post(f"{fact['url']}reject/", {}).status_code == 200


def test_a_replay_is_compared_with_its_run(program_a: Program) -> None:
    run = preview(program_a)
    replay = program_a.post(f"{run['url']}replay/", {}).json()
    assert (replay["replay_of"], replay["state"]) == (run["id"], "preview")
    compared = program_a.get(f"{run['url']}comparison/?other={replay['id']}").json()
    assert [candidate["value"] for candidate in compared["both"]] == ["Oslo"]
    assert (compared["only_first"], compared["only_second"], compared["changed"]) == ([], [], [])


def test_a_conversation_without_messages_is_refused(program_a: Program) -> None:
    body = {"agent": "ada", "user_id": "maria", "thread_id": "nothing"}
    answer = program_a.post(RUNS, body)
    kind = "urn:konstruct:problem:extraction-failed"
    assert (answer.status_code, answer.json()["type"]) == (422, kind)


def test_a_preview_without_a_language_model_is_refused(program_a: Program, settings: Any) -> None:
    settings.LLM_POOL_URL = ""
    program_a.send("I live in Oslo.", user_id="maria", thread_id="t1")
    answer = program_a.post(RUNS, {"agent": "ada", "user_id": "maria", "thread_id": "t1"})
    assert (answer.status_code, answer.json()["detail"]) == (422, NO_MODEL)


def test_a_tenant_with_an_equal_id_sees_its_own_run(program_a: Program, program_b: Program) -> None:
    runs = {}
    for program, text in ((program_a, "I live in Oslo."), (program_b, "I live in Rome.")):
        program.send(text, user_id="maria", thread_id="t1")
        with tenant_scope(program.tenant.id):
            message = Message.objects.get()
            run_id = runs.get("id")
            fields = {"pk": run_id} if run_id else {}
            runs["id"] = add_run(message, state=RunState.PREVIEW, **fields).pk
    outputs = [
        program.get(f"{RUNS}{runs['id']}/").json()["output"] for program in (program_a, program_b)
    ]
    assert ["Oslo" in output for output in outputs] == [True, False]
    assert program_b.post(f"{RUNS}{runs['id']}/roll-back/", {}).status_code == 409
    with tenant_scope(program_a.tenant.id):
        assert ExtractionRun.objects.get().state == RunState.PREVIEW
        assert Agent.objects.count() == 1
