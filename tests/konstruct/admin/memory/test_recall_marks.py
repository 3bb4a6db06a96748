"""Marks of reviewers on recalled memories, in the admin and by REST."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from memory.conversations.short_term import clear_window
from memory.indexing import embedding_jobs
from memory.models import Message, RecallEvent, RecallMark
from memory.recall import marks
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program, json_bytes

EVENTS = "/api/v1/recall-events/"
SEARCH = "/api/v1/memories/search/"


@pytest.fixture
def event(program_a: Program, send_message: Callable[..., Message]) -> RecallEvent:
    """The recall for a reply, with one message."""
    send_message(program_a, "My sister lives in Lisbon and visits in May.")
    embedding_jobs.drain(program_a.tenant.id)
    # The prompt contains the window in any case.
    clear_window(program_a.tenant.id, program_a.agent.id, "maria")
    message = send_message(program_a, "Where does my sister live?", thread_id="t2")
    embedding_jobs.drain(program_a.tenant.id)
    with tenant_scope(program_a.tenant.id):
        return RecallEvent.objects.get(reply__in_reply_to=message)


def memory_of(event: RecallEvent) -> str:
    return str(event.hits[0]["message_id"])


def stored(program: Program) -> list[tuple[str, str]]:
    with tenant_scope(program.tenant.id):
        return list(RecallMark.objects.values_list("relevance", "author_name"))


def put(program: Program, address: str, relevance: str) -> Any:
    body = json_bytes({"relevance": relevance})
    return program.request("PUT", address, data=body, content_type="application/json")


def page_of(event: RecallEvent) -> str:
    return f"/admin/conversations/{event.reply_id}/?why={event.reply_id}"


def mark_address(event: RecallEvent, message_id: Any) -> str:
    return f"/admin/messages/{event.reply_id}/recalled/{message_id}/mark/"


def test_a_reviewer_marks_a_memory_and_removes_the_mark(
    program_a: Program, event: RecallEvent, browser: Callable[..., Client]
) -> None:
    client = browser(program_a.tenant)
    page = client.get(page_of(event)).text
    address = mark_address(event, memory_of(event))
    assert f'action="{address}"' in page
    assert f"0 of the {marks.MIN_MARKS} marks" in page
    answer = client.post(address, {"relevance": "relevant"}, follow=True)
    assert "Marked: relevant." in answer.text
    assert 'value="relevant" aria-pressed="true"' in answer.text
    assert [relevance for relevance, _ in stored(program_a)] == ["relevant"]
    client.post(address, {"relevance": "not_relevant"})
    assert [relevance for relevance, _ in stored(program_a)] == ["not_relevant"]
    client.post(address, {"relevance": ""})
    assert stored(program_a) == []
    with tenant_scope(program_a.tenant.id):
        recorded = AccessEvent.objects.filter(subject="recall mark").order_by("id")
        assert list(recorded.values_list("action", "user_id")) == [
            ("decide", "maria"), ("decide", "maria"), ("delete", "maria"),
        ]  # fmt: skip


def test_invalid_recall_marks_are_refused(
    program_a: Program, event: RecallEvent, browser: Callable[..., Client], tenant_b: Any
) -> None:
    reader = browser(program_a.tenant, "view_message", "view_recallevent")
    address = mark_address(event, memory_of(event))
    assert address not in reader.get(page_of(event)).text
    assert reader.post(address, {"relevance": "relevant"}).status_code == 403
    client = browser(program_a.tenant)
    assert client.get(address).status_code == 405
    assert client.post(address, {"relevance": "best"}).status_code == 404
    unknown = mark_address(event, uuid4())
    assert client.post(unknown, {"relevance": "relevant"}).status_code == 404
    assert browser(tenant_b).post(address, {"relevance": "relevant"}).status_code == 404
    assert stored(program_a) == []


def test_marks_of_a_tenant_apply_to_all_its_users(
    program_a: Program,
    event: RecallEvent,
    browser: Callable[..., Client],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(marks, "MIN_MARKS", 1)
    url = f"{EVENTS}{event.pk}/"
    question = {"agent": "ada", "user_id": "maria", "query": "Where does my sister live?"}
    before = program_a.get(url).json()
    assert before["calibration"] == {"is_own": False, "marks": 0}
    found = program_a.post(SEARCH, question).json()["results"]

    marked = put(program_a, f"{url}marks/{memory_of(event)}/", "not_relevant")
    assert (marked.status_code, marked.json()["author_kind"]) == (200, "program")
    after = program_a.get(url).json()
    assert after["calibration"] == {"is_own": True, "marks": 1}
    assert after["hits"][0]["mark"] == "not_relevant"
    assert after["hits"][0]["probability"] < before["hits"][0]["probability"]
    assert after["hits"][0]["gate_value"] == before["hits"][0]["gate_value"]
    again = program_a.post(SEARCH, question).json()
    assert again["calibration"] == {"is_own": True, "marks": 1}
    assert [hit["message_id"] for hit in again["results"]] == [hit["message_id"] for hit in found]
    assert again["results"][0]["probability"] < found[0]["probability"]
    page = browser(program_a.tenant).get(page_of(event)).text
    assert "calibrated by 1 mark of this team" in page

    removed = program_a.request("DELETE", f"{url}marks/{memory_of(event)}/")
    assert removed.status_code == 204
    assert program_a.get(url).json() == before


@pytest.mark.parametrize("preset", ["precise", "balanced", "thorough", "", "<b>"])
def test_the_page_of_memories_recalls_with_a_preset(
    program_a: Program, event: RecallEvent, browser: Callable[..., Client], preset: str
) -> None:
    query = {"agent": str(program_a.agent.pk), "user": "maria", "q": "sister", "preset": preset}
    page = browser(program_a.tenant).get("/admin/memories/", query)
    assert page.status_code == 200
    assert "<b>" not in page.text
    found = [hit for side in page.context["sides"] for hit in side["hits"] + side["cut"]]
    assert bool(found) == (preset != "<b>")
    assert (' value="precise" selected' in page.text) == (preset == "precise")
