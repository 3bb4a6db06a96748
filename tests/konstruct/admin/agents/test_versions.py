"""Versions of agents in the admin: the difference of each change, and the rollback."""

import pytest
from django.test import Client

from konstruct.orchestrator.agents import create_agent, update_agent
from konstruct.orchestrator.models import Agent, AgentVersion
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.admin.agents.test_agents import AGENT_FORM, AGENTS
from tests.konstruct.conftest import Browser, Program


@pytest.fixture
def bo(program_a: Program) -> Agent:
    bo = create_agent(tenant_id=program_a.tenant.id, name="bo", persona="Speak plainly.")
    with tenant_scope(program_a.tenant.id):
        update_agent(bo, persona="Speak very plainly.", recall_top_k=5, hands_to=[
            program_a.agent.pk])  # fmt: skip
    return bo


def versions(program: Program, **named: object) -> list[AgentVersion]:
    with tenant_scope(program.tenant.id):
        return list(AgentVersion.objects.filter(**named).order_by("number"))


def test_the_form_of_an_agent_keeps_versions(program_a: Program, admin: Client) -> None:
    admin.post(f"{AGENTS}add/", {**AGENT_FORM, "note": "Begin."})
    with tenant_scope(program_a.tenant.id):
        bob = Agent.objects.get(name="bob")
    page = f"{AGENTS}{bob.pk}/change/"
    assert admin.post(page, {**AGENT_FORM, "recall_top_k": "5"}).status_code == 302
    assert admin.post(page, {**AGENT_FORM, "recall_top_k": "5"}).status_code == 302  # no change
    first, second = versions(program_a, agent_id=bob.pk)
    assert (first.note, first.changed, first.author.partition(":")[0]) == ("Begin.", [], "person")
    assert (second.changed, second.settings["recall_top_k"]) == (["recall_top_k"], 5)


def test_each_version_shows_its_difference(bo: Agent, program_a: Program, admin: Client) -> None:
    page = admin.get(f"/admin/agents/{bo.pk}/versions/").text
    assert "Speak <ins>very </ins>plainly." in page
    assert "<del>blank</del> → <ins>5</ins>" in page
    assert f"[&quot;{program_a.agent.name}&quot;]" in page


def test_rolling_back_is_a_version(bo: Agent, program_a: Program, admin: Client) -> None:
    german = {"Accept-Language": "de"}
    answer = admin.post(f"/admin/agents/{bo.pk}/versions/1/restore/", headers=german)
    assert (
        "bo hat die Einstellungen von Version 1."
        in admin.get(answer["Location"], headers=german).text
    )
    *_, last = versions(program_a, agent_id=bo.pk)
    assert (last.number, last.restores) == (3, 1)
    with tenant_scope(program_a.tenant.id):
        bo.refresh_from_db()
        event = AccessEvent.objects.filter(action="edit", subject="agent").latest("pk")
    assert (bo.persona, bo.recall_top_k, bo.hands_to) == ("Speak plainly.", None, [])
    assert event.detail["restored"] == 1
    assert "persona" in event.detail["withheld"]


def test_version_that_is_no_longer_valid_is_not_restored(
    bo: Agent, program_a: Program, admin: Client
) -> None:
    with tenant_scope(program_a.tenant.id):
        update_agent(bo, name="bea")
        create_agent(tenant_id=program_a.tenant.id, name="bo")
    answer = admin.post(f"/admin/agents/{bo.pk}/versions/1/restore/", follow=True)
    assert "This tenant has an agent of that name already" in answer.text
    with tenant_scope(program_a.tenant.id):
        assert Agent.objects.get(pk=bo.pk).name == "bea"


def test_an_auditor_reads_versions_and_does_not_roll_back(
    bo: Agent, program_a: Program, browser: Browser
) -> None:
    auditor = browser(program_a.tenant, "view_agent")
    page = auditor.get(f"/admin/agents/{bo.pk}/versions/")
    assert page.status_code == 200
    assert "Roll back" not in page.text
    address = f"/admin/agents/{bo.pk}/versions/1/restore/"
    assert auditor.post(address).status_code == 403


def test_hostile_settings_are_shown_as_text(bo: Agent, program_a: Program, admin: Client) -> None:
    with tenant_scope(program_a.tenant.id):
        update_agent(bo, persona="<script>alert(1)</script>", escalate_on=["<b>"])
        update_agent(bo, persona="x" * 100_000, note="<i>note</i>")
    page = admin.get(f"/admin/agents/{bo.pk}/versions/").text
    assert "<script>alert(1)" not in page
    assert "<i>note" not in page
