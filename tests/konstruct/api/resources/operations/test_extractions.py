"""Progress of extractions, the retry of failed ones, and usage of models by REST."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from konstruct.llm.completions import LLMRefused
from konstruct.orchestrator.extraction.runs import EXTRACTIONS
from konstruct.orchestrator.models import CallOutcome, ExtractionCursor, ModelCall
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program
from tests.konstruct.metered import metered_call

EXTRACTIONS_LIST = "/api/v1/extractions/"
USAGE = "/api/v1/usage/models/"


@pytest.fixture
def cursors(program_a: Program) -> dict[str, UUID]:
    """Create cursors of three conversations. Return them by the states of their jobs."""
    keys = {}
    with tenant_scope(program_a.tenant.id):
        for thread in ("processed", "queued", "failed"):
            cursor = ExtractionCursor.objects.create(
                agent_id=program_a.agent.id, user_id="maria", thread_id=thread, last_number=7
            )
            keys[thread] = cursor.pk
            if thread != "processed":
                EXTRACTIONS.enqueue(cursor.pk)
        EXTRACTIONS.record_failure(keys["failed"], LLMRefused("No such model: gpt-0."))
    return keys


def test_conversations_are_listed_with_how_far_they_are_processed(
    program_a: Program, cursors: dict[str, UUID]
) -> None:
    rows = program_a.get(f"{EXTRACTIONS_LIST}?user_id=maria").json()["results"]
    by_state = {row["state"]: row for row in rows}
    assert {state: UUID(row["id"]) for state, row in by_state.items()} == cursors
    failed = by_state["failed"]
    assert (failed["attempts"], failed["last_error"]) == (1, "No such model: gpt-0.")
    assert (failed["agent"], failed["last_number"]) == (program_a.agent.name, 7)
    processed = by_state["processed"]
    assert (processed["attempts"], processed["last_error"], processed["due_at"]) == (0, "", None)
    for state in cursors:
        (row,) = program_a.get(f"{EXTRACTIONS_LIST}?state={state}").json()["results"]
        assert row["thread_id"] == state
    assert program_a.get(f"{EXTRACTIONS_LIST}?state=done").status_code == 400
    assert program_a.get(f"{EXTRACTIONS_LIST}?thread_id=none").json()["results"] == []


def test_a_failed_extraction_is_retried_once(program_a: Program, cursors: dict[str, UUID]) -> None:
    address = f"{EXTRACTIONS_LIST}{cursors['failed']}/retry/"
    document = program_a.post(address, {}).json()
    assert (document["state"], document["attempts"]) == ("queued", 0)
    again = program_a.post(address, {})
    assert (again.status_code, again.json()["type"].rpartition(":")[2]) == (409, "wrong-state")
    for thread in ("processed", "queued"):
        other = program_a.post(f"{EXTRACTIONS_LIST}{cursors[thread]}/retry/", {})
        assert other.status_code == 409
    with tenant_scope(program_a.tenant.id):
        assert not EXTRACTIONS.jobs().failed().exists()


def test_usage_of_models_is_summed(program_a: Program) -> None:
    now = datetime.now(UTC)
    with tenant_scope(program_a.tenant.id):
        for days, outcome in ((0, CallOutcome.DONE), (0, CallOutcome.UNKNOWN), (40, "failed")):
            created_at = now - timedelta(days=days)
            metered_call(outcome, agent_id=program_a.agent.id, created_at=created_at)
        ModelCall.objects.create(purpose="extraction", model="gpt-0")
    answer = program_a.get(USAGE).json()
    assert answer["is_complete"] is True
    of_agent = next(row for row in answer["results"] if row["agent"])
    assert of_agent == {
        "day": str(now.date()),
        "agent": program_a.agent.name,
        "agent_id": str(program_a.agent.id),
        "purpose": "extraction",
        "language_model": "",
        "model": "gpt-0",
        "calls": 2,
        "failed": 0,
        "unknown": 1,
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "cost": "0.250000",
    }
    assert [row["agent"] for row in answer["results"] if row is not of_agent] == [None]
    only = program_a.get(f"{USAGE}?agent={program_a.agent.name}").json()["results"]
    assert [row["calls"] for row in only] == [2]
    since = (now - timedelta(days=50)).isoformat().replace("+00:00", "Z")
    until = (now - timedelta(days=30)).isoformat().replace("+00:00", "Z")
    (old,) = program_a.get(f"{USAGE}?since={since}&until={until}").json()["results"]
    assert (old["calls"], old["failed"]) == (1, 1)
