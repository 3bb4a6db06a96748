"""Trying an agent out: answered as the pipeline would, and nothing of it stored."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from konstruct.llm import client
from konstruct.orchestrator import runner
from konstruct.orchestrator.models import PendingReply
from memory.conversations.short_term import clear_window
from memory.models import Message, PendingEmbedding, RecallEvent
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program
from tests.servers.llm import Answer, LLMServer

COUNTED = (Message, RecallEvent, PendingEmbedding, PendingReply)


def counts(program: Program) -> list[int]:
    with tenant_scope(program.tenant.id):
        return [model._default_manager.count() for model in COUNTED]


@pytest.fixture
def program_a(db: None, standing_populated: Program) -> Program:
    return standing_populated


@pytest.fixture
def populated_a(program_a: Program) -> Program:
    return program_a


def test_a_trial_is_answered_with_memories_and_not_stored(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    clear_window(populated_a.tenant.id, populated_a.agent.pk, "maria")
    before = counts(populated_a)
    answer = browser(populated_a.tenant).post(
        f"/admin/agents/{populated_a.agent.pk}/try/",
        {"user_id": "maria", "content": "Where does my sister live?"},
    )
    assert "Lisbon" in answer.context["reply"]
    assert any("Lisbon" in hit["content"] for hit in answer.context["why"]["hits"])
    assert counts(populated_a) == before
    with tenant_scope(populated_a.tenant.id):
        event = AccessEvent.objects.get(action="try")
    assert (event.user_id, event.detail["query"]) == ("maria", "Where does my sister live?")


def test_a_trial_passes_through_run_agent(
    populated_a: Program, browser: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "run_agent", lambda msg, agent, messages=None: f"{agent.name}!")
    answer = browser(populated_a.tenant).post(
        f"/admin/agents/{populated_a.agent.pk}/try/", {"content": "Hello"}
    )
    assert answer.context["reply"] == "ada!"


def test_somebody_unknown_gets_no_memories(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    answer = browser(populated_a.tenant).post(
        f"/admin/agents/{populated_a.agent.pk}/try/", {"content": "Where does my sister live?"}
    )
    assert answer.context["why"]["hits"] == []
    assert "Lisbon" not in answer.context["reply"]


def test_a_language_model_that_refuses_says_why(
    populated_a: Program, browser: Callable[..., Client], llm_server: LLMServer, settings: Any
) -> None:
    client._known_apis.clear()
    settings.LLM_POOL_URL = llm_server.url
    llm_server.default = Answer({"error": "no such model"}, status=400)
    answer = browser(populated_a.tenant).post(
        f"/admin/agents/{populated_a.agent.pk}/try/", {"content": "Hello"}
    )
    assert "No reply:" in answer.text
    assert "The language model refused the request (HTTP 400)." in answer.text
    assert "no such model" not in answer.text


def test_trying_is_for_those_who_may(populated_a: Program, browser: Callable[..., Client]) -> None:
    address = f"/admin/agents/{populated_a.agent.pk}/try/"
    assert browser(populated_a.tenant, "change_agent").get(address).status_code == 403
    assert browser(populated_a.tenant, "try_agent").get(address).status_code == 200
