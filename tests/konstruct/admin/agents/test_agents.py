"""Agents in a tenant's admin."""

from typing import Any

import pytest
from django.test import Client

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import Agent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

AGENTS = "/admin/orchestrator/agent/"
AGENT_FORM = {
    "conversation_pause_hours": "12",
    "extraction_idle_seconds": "600",
    "extraction_batch_size": "40",
    "fact_review": "doubtful",
    "fact_review_by_slot": "{}",
    "name": "bob",
    "is_active": "on",
    "system_prompt": "Help.",
    "identity": "",
    "persona": "",
    "model_tier": "reasoning",
    "model": "",
    "recall_mode": "hybrid",
    "recall_gate": "on",
    "recall_preset": "balanced",
    "recall_weights": '{"time": 1}',
}


@pytest.mark.slow
def test_an_agent_is_made_and_edited(program_a: Program, admin: Client) -> None:
    assert admin.get(f"{AGENTS}add/").status_code == 200
    assert admin.post(f"{AGENTS}add/", AGENT_FORM).status_code == 302
    with tenant_scope(program_a.tenant.id):
        agent = Agent.objects.get(name="bob")
    page = f"{AGENTS}{agent.pk}/change/"
    assert admin.post(page, {**AGENT_FORM, "recall_top_k": "5"}).status_code == 302
    with tenant_scope(program_a.tenant.id):
        agent.refresh_from_db()
    assert (agent.model_tier, agent.recall_top_k) == ("reasoning", 5)
    assert agent.recall_weights == {"time": 1}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "ada"}, "has an agent of that name already"),
        ({"recall_top_k": "500"}, "top_k=500 is more than 100"),
        ({"fact_review_by_slot": '{"diet": "maybe"}'}, "Give an object of slots"),
        ({"extraction_batch_size": "201"}, "Give 1 to 200."),
    ],
)
def test_invalid_agent_is_refused_on_the_page(
    program_a: Program, admin: Client, fields: dict[str, str], message: str
) -> None:
    response = admin.post(f"{AGENTS}add/", {**AGENT_FORM, **fields})
    assert response.status_code == 200
    assert message in response.content.decode()
    with tenant_scope(program_a.tenant.id):
        assert Agent.objects.count() == 1


def test_choosing_a_preset_clears_thresholds_that_stay_as_they_are(
    program_a: Program, admin: Client
) -> None:
    with tenant_scope(program_a.tenant.id):
        agent = create_agent(tenant_id=program_a.tenant.id, name="bob", recall_open_at=0.2)
    page = f"{AGENTS}{agent.pk}/change/"
    for fields, expected in (
        ({"recall_open_at": "0.2"}, ("balanced", 0.2)),
        ({"recall_open_at": "0.2", "recall_preset": "precise"}, ("precise", None)),
        ({"recall_open_at": "0.3", "recall_preset": "thorough"}, ("thorough", 0.3)),
    ):
        assert admin.post(page, {**AGENT_FORM, **fields}).status_code == 302
        with tenant_scope(program_a.tenant.id):
            agent.refresh_from_db()
        assert (agent.recall_preset, agent.recall_open_at) == expected


def test_an_agent_cannot_be_deleted(program_a: Program, admin: Client) -> None:
    assert admin.post(f"{AGENTS}{program_a.agent.pk}/delete/").status_code == 403
    with tenant_scope(program_a.tenant.id):
        assert Agent.objects.exists()


@pytest.mark.slow
def test_tools_and_rules_of_an_agent_are_edited(pending_a: Program, admin: Client) -> None:
    page = f"/admin/orchestrator/agent/{pending_a.agent.pk}/change/"
    form: dict[str, Any] = {**AGENT_FORM, "escalate_on": "refund\r\n\r\nlegal action"}
    assert "not one of the available choices" in admin.post(page, {**form, "tools": ["rm"]}).text
    admin.post(page, {**form, "tools": ["remember_fact"]})
    with tenant_scope(pending_a.tenant.id):
        agent = Agent.objects.get(pk=pending_a.agent.pk)
    assert (agent.tools, agent.escalate_on) == (["remember_fact"], ["refund", "legal action"])
