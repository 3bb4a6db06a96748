"""Trying an agent: dry runs in the admin, beside a draft. Only the log is stored."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from konstruct.llm import client
from konstruct.orchestrator import runner
from konstruct.orchestrator.models import Agent
from memory.conversations.short_term import clear_window
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program
from tests.servers.llm import Answer, LLMServer
from tests.stored import row_counts

# The log stores the user, the session the login, and the meter the calls.
MAY_CHANGE = (
    *("audit_accessevent", "orchestrator_modelcall", "orchestrator_dailyusage"),
    *("auth_user", "auth_user_user_permissions", "django_session"),
)
DRAFT = {"draft-model_tier": "fast", "draft-recall_mode": "hybrid", "draft-recall_weights": "{}",
         "draft-recall_gate": "on", "draft-recall_preset": "balanced"}  # fmt: skip


def counts(program: Program) -> dict[str, int]:
    with tenant_scope(program.tenant.id):
        return row_counts(without=MAY_CHANGE)


@pytest.fixture
def program_a(db: None, module_populated: Program) -> Program:
    return module_populated


@pytest.fixture
def populated_a(program_a: Program) -> Program:
    return program_a


@pytest.fixture
def address(populated_a: Program) -> str:
    return f"/admin/agents/{populated_a.agent.pk}/try/"


def last(answer: Any, side: int = 0) -> Any:
    return answer.context["sides"][side]["thread"].exchanges[-1]


def test_a_trial_is_answered_with_memories_and_not_stored(
    populated_a: Program, browser: Callable[..., Client], address: str
) -> None:
    clear_window(populated_a.tenant.id, populated_a.agent.pk, "maria")
    before = counts(populated_a)
    answer = browser(populated_a.tenant).post(
        f"{address}?user=maria", {"user_id": "maria", "content": "Where does my sister live?"}
    )
    assert "Lisbon" in last(answer).reply
    sources = answer.context["sides"][0]["why"]
    assert any("Lisbon" in hit["content"] for hit in sources["hits"])
    assert counts(populated_a) == before
    with tenant_scope(populated_a.tenant.id):
        event = AccessEvent.objects.get(action="try")
    assert (event.user_id, event.detail["query"]) == ("maria", "Where does my sister live?")


def test_the_page_opens_without_a_complaint(
    populated_a: Program, browser: Callable[..., Client], address: str
) -> None:
    assert "This field is required" not in browser(populated_a.tenant).get(address).text


def test_turns_of_a_trial_are_stored_only_in_the_form(
    populated_a: Program, browser: Callable[..., Client], address: str
) -> None:
    before = counts(populated_a)
    person = browser(populated_a.tenant)
    first = person.post(address, {"content": "talk to a human"})
    assert "It would be handed to a person (the user asks for one)." in first.text
    state = first.context["state"]
    second = person.post(address, {"content": "Hello?", "state": state})
    assert len(second.context["sides"][0]["thread"].exchanges) == 2
    assert "the message would wait for them" in second.text
    assert counts(populated_a) == before
    # The form of another person, or a changed one, is refused.
    for state_of_another in (state, state[:-1] + "x", "", "\0"):
        stranger = browser(populated_a.tenant)
        answer = stranger.post(address, {"content": "Hello", "state": state_of_another})
        assert len(answer.context["sides"][0]["thread"].exchanges) == 1


def test_a_draft_is_asked_the_same_and_saved_when_wanted(
    populated_a: Program, browser: Callable[..., Client], address: str
) -> None:
    person = browser(populated_a.tenant)
    form = {**DRAFT, "content": "I want a refund", "draft-escalate_on": "refund"}
    answer = person.post(address, form)
    assert answer.context["changes"] == {"escalate_on": ["refund"]}
    assert "handed to a person" not in str(last(answer).steps)
    assert "handed to a person (a rule)" in last(answer, 1).steps[0]
    with tenant_scope(populated_a.tenant.id):
        assert Agent.objects.get(pk=populated_a.agent.pk).escalate_on == []
    answer = person.post(address, {**form, "do": "save", "state": answer.context["state"]})
    assert answer.status_code == 302
    with tenant_scope(populated_a.tenant.id):
        assert Agent.objects.get(pk=populated_a.agent.pk).escalate_on == ["refund"]
        event = AccessEvent.objects.get(action="edit", subject="agent")
    assert event.detail == {"before": {"escalate_on": []}, "after": {"escalate_on": ["refund"]}}


def test_a_draft_that_does_not_differ_is_not_asked(
    populated_a: Program, browser: Callable[..., Client], address: str
) -> None:
    answer = browser(populated_a.tenant).post(address, {**DRAFT, "content": "Hello"})
    assert (answer.context["changes"], len(answer.context["sides"])) == ({}, 1)


def test_invalid_draft_is_refused_with_the_reason(
    populated_a: Program, browser: Callable[..., Client], address: str
) -> None:
    form = {**DRAFT, "content": "Hello", "draft-recall_top_k": "500"}
    answer = browser(populated_a.tenant).post(address, form)
    assert "top_k=500 is more than 100" in answer.text
    assert answer.context["sides"][0]["thread"].exchanges == ()


def test_saving_a_draft_requires_the_permission_to_change_agents(
    populated_a: Program, browser: Callable[..., Client], address: str
) -> None:
    form = {**DRAFT, "do": "save", "draft-escalate_on": "refund"}
    client = browser(populated_a.tenant, "try_agent")
    assert "Save draft" not in client.get(address).text
    assert client.post(address, form).status_code == 403
    with tenant_scope(populated_a.tenant.id):
        assert Agent.objects.get(pk=populated_a.agent.pk).escalate_on == []


def test_finding_people_requires_the_permission_to_view_them(
    populated_a: Program, browser: Callable[..., Client], address: str
) -> None:
    found = browser(populated_a.tenant).get(f"{address}?find=MAR").context["found"]
    assert [call["user_id"] for call in found] == ["maria"]
    assert found[0]["address"] == f"{address}?user=maria"
    assert (
        browser(populated_a.tenant, "try_agent").get(f"{address}?find=mar").context["found"] == []
    )


def test_another_tenants_agent_is_not_tried(
    populated_a: Program, program_b: Program, browser: Callable[..., Client], address: str
) -> None:
    assert browser(program_b.tenant).get(address).status_code == 404
    assert browser(program_b.tenant).post(address, {"content": "Hello"}).status_code == 404


def test_hostile_text_is_shown_as_text(
    populated_a: Program, browser: Callable[..., Client], address: str
) -> None:
    client = browser(populated_a.tenant)
    answer = client.post(f"{address}?user=<b>x", {"content": "<script>alert(1)</script> \u202e"})
    assert "<script>alert(1)" not in answer.text
    assert "&lt;script&gt;alert(1)" in answer.text
    for content in ("x" * 100_000, "a\0b"):
        answer = client.post(address, {"content": content})
        assert answer.context["form"].errors["content"]


def test_a_trial_passes_through_run_agent(
    populated_a: Program, browser: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "run_agent", lambda msg, agent, messages=None: f"{agent.name}!")
    answer = browser(populated_a.tenant).post(
        f"/admin/agents/{populated_a.agent.pk}/try/", {"content": "Hello"}
    )
    assert last(answer).reply == "ada!"


def test_unknown_user_gets_no_memories(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    answer = browser(populated_a.tenant).post(
        f"/admin/agents/{populated_a.agent.pk}/try/", {"content": "Where does my sister live?"}
    )
    assert answer.context["sides"][0]["why"]["hits"] == []
    assert "Lisbon" not in last(answer).reply


def test_refusal_of_the_language_model_is_shown(
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
