"""Handing a conversation to another agent in the admin, and the answering agent."""

from uuid import uuid4

import pytest
from django.test import Client

from konstruct.orchestrator import pipeline
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import Agent, Escalation
from memory.models import Message
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.admin.agents.test_agents import AGENT_FORM
from tests.konstruct.conftest import Browser, Program


@pytest.mark.slow
def test_person_hands_over_a_conversation_and_sees_the_new_agent(
    populated_a: Program, populated_b: Program, browser: Browser, admin: Client
) -> None:
    tenant = populated_a.tenant
    bert = create_agent(tenant_id=tenant.id, name="bert")
    create_agent(tenant_id=tenant.id, name="gone", is_active=False)
    with tenant_scope(tenant.id):
        waiting = Message.objects.get(user_id="bob")
    conversation = f"/admin/conversations/{waiting.pk}/"
    text = admin.get(conversation).text
    assert f'<option value="{bert.pk}">bert</option>' in text
    assert ">gone</option>" not in text
    hand = f"{conversation}hand-over/"
    assert admin.post(hand, {"agent": str(uuid4())}, follow=True).status_code == 200
    assert admin.post(hand, {"agent": "bert"}).status_code == 404
    other = {"agent": str(populated_b.agent.pk)}
    assert "No active agent" in admin.post(hand, other, follow=True).text
    with tenant_scope(tenant.id):
        assert not Escalation.objects.exists()
    handed = admin.post(hand, {"agent": str(bert.pk)}, follow=True)
    assert "Transferred." in handed.text
    assert "<bdi>bert</bdi> answers here instead of <bdi>ada</bdi>" in handed.text
    assert "Answer as a person" not in handed.text
    assert "<bdi>bert</bdi> answers here" in admin.get(conversation).text
    assert "bert" in admin.get("/admin/orchestrator/escalation/?to=agent").text
    with tenant_scope(tenant.id):
        pipeline.handle(tenant_id=tenant.id, message_id=waiting.pk)
        case = Escalation.objects.open().get()
        event = AccessEvent.objects.filter(action="escalate").latest("created_at")
        assert event.detail["after"]["to_agent_id"] == str(bert.pk)
    text = admin.get(conversation).text
    assert "This is bert." in text
    assert "another agent" in text
    assert browser(populated_b.tenant).get(f"/admin/escalations/{case.pk}/").status_code == 404
    resolved = admin.post(
        f"/admin/escalations/{case.pk}/resolve/", {"outcome": "agent", "note": ""}, follow=True
    )
    assert "Resolved" in resolved.text
    assert admin.get(hand).status_code == 403


def test_an_agents_rules_are_written_with_names(populated_a: Program, admin: Client) -> None:
    tenant = populated_a.tenant
    bert = create_agent(tenant_id=tenant.id, name="bert")
    page = f"/admin/orchestrator/agent/{populated_a.agent.pk}/change/"
    form = {
        **AGENT_FORM,
        "name": "ada", "hands_to": [str(bert.pk)],
        "hand_over_on": "invoice: bert\r\n\r\nthe bill: bert", "hand_back_on": "done\r\n",
    }  # fmt: skip
    assert admin.post(page, form).status_code == 302
    with tenant_scope(tenant.id):
        agent = Agent.objects.get(name="ada")
    rules = {"invoice": str(bert.pk), "the bill": str(bert.pk)}
    assert (agent.hands_to, agent.hand_over_on) == ([bert.pk], rules)
    assert agent.hand_back_on == ["done"]
    assert "invoice: bert" in admin.get(page).text
    for wrong in ("invoice", "invoice: zoe", ": bert"):
        refused = admin.post(page, {**form, "hand_over_on": wrong})
        assert refused.status_code == 200, wrong
    with tenant_scope(tenant.id):
        assert Agent.objects.get(name="ada").hand_over_on == rules
