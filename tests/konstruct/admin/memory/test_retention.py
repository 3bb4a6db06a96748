"""Retention: rules are set, changed and removed in the admin, once for each agent, and logged."""

from collections.abc import Callable

import pytest
from django.test import Client

from tenants.audit.models import AccessEvent, ErasureRequest, RetentionRule
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

RULES = "/admin/audit/retentionrule/"


def rules(program: Program) -> list[tuple[str, int]]:
    with tenant_scope(program.tenant.id):
        return [
            (str(rule.agent_id or ""), rule.days) for rule in RetentionRule.objects.order_by("days")
        ]


def test_a_rule_is_made_changed_and_removed_and_all_of_it_is_logged(
    program_a: Program, program_b: Program, browser: Callable[..., Client]
) -> None:
    client = browser(program_a.tenant)
    agent = str(program_a.agent.pk)
    client.post(f"{RULES}add/", {"agent_id": "", "days": "365"})
    client.post(f"{RULES}add/", {"agent_id": agent, "days": "30"})
    assert rules(program_a) == [(agent, 30), ("", 365)]
    assert rules(program_b) == []
    page = client.get(RULES).text
    assert program_a.agent.name in page
    assert "all others" in page
    with tenant_scope(program_a.tenant.id):
        standing = {rule.days: rule.pk for rule in RetentionRule.objects.all()}
    client.post(f"{RULES}{standing[30]}/change/", {"agent_id": agent, "days": "60"})
    client.post(f"{RULES}{standing[365]}/delete/", {"post": "yes"})
    assert rules(program_a) == [(agent, 60)]
    with tenant_scope(program_a.tenant.id):
        logged = AccessEvent.objects.filter(subject="retention rule").order_by("id")
        done = [event.action for event in logged if event.action not in ("list", "view")]
        assert done == ["create", "create", "edit", "delete"]
        assert logged.last().detail["before"]["days"] == 365


@pytest.mark.parametrize(
    ("agent", "days", "said"),
    [
        ("", "0", "greater than or equal to 1"),
        ("", "99999", "less than or equal to 36500"),
        ("", "many", "whole number"),
        ("00000000-0000-4000-8000-000000000000", "30", "Select a valid choice"),
        ("standing", "30", "There is a rule for it already"),
    ],
)
def test_what_is_no_rule_is_refused(
    program_a: Program, browser: Callable[..., Client], agent: str, days: str, said: str
) -> None:
    client = browser(program_a.tenant)
    if agent == "standing":
        agent = str(program_a.agent.pk)
        client.post(f"{RULES}add/", {"agent_id": agent, "days": "7"})
    before = rules(program_a)
    assert said in client.post(f"{RULES}add/", {"agent_id": agent, "days": days}).text
    assert rules(program_a) == before


def test_who_may_only_read_changes_no_rule(
    program_a: Program, browser: Callable[..., Client]
) -> None:
    client = browser(program_a.tenant, "view_retentionrule")
    assert client.get(RULES).status_code == 200
    assert client.post(f"{RULES}add/", {"agent_id": "", "days": "1"}).status_code == 403
    assert rules(program_a) == []


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "waits for the owner"),
        ({"progress": {"left": 3}}, "being done"),
        ({"last_error": "the broker is down"}, "failed, will be tried again"),
    ],
)
def test_a_request_of_erasure_tells_how_far_it_is_and_of_which_agent(
    program_a: Program,
    browser: Callable[..., Client],
    fields: dict[str, object],
    state: str,
) -> None:
    with tenant_scope(program_a.tenant.id):
        request = ErasureRequest(
            user_id="bob", agent_id=program_a.agent.pk, requested_by="eva", **fields
        )
        page_of = state, program_a.agent.name, str(fields.get("last_error", ""))
        request.save(force_insert=True)
    page = browser(program_a.tenant).get(f"/admin/audit/erasurerequest/{request.pk}/change/").text
    assert [text in page for text in page_of] == [True, True, True]
