"""Retention: rules are set, changed and removed in the admin, one for each agent, and logged."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from konstruct.orchestrator.retention_rules import MAX_DAYS, apply_due_changes
from konstruct.privacy.erasure.messages import RETENTION_ACTOR
from memory.models import Message
from tenants.admin.recorded_admin import time_text
from tenants.audit.models import RetentionRule
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program

RULES = "/admin/audit/retentionrule/"


def rules(program: Program) -> list[tuple[str, int]]:
    with tenant_scope(program.tenant.id):
        return [
            (str(rule.agent_id or ""), rule.days) for rule in RetentionRule.objects.order_by("days")
        ]


def take_effect(program: Program) -> None:
    """Advance a day, and run the owner worker."""
    with tenant_scope(program.tenant.id):
        RetentionRule.objects.filter(effective_at__isnull=False).update(effective_at=Now())
        apply_due_changes(timezone.now(), by=RETENTION_ACTOR)


def test_shorter_retention_shows_its_effect_and_starts_after_a_day(
    populated_a: Program, populated_b: Program, admin: Client
) -> None:
    admin.cookies["time_zone"] = "Asia%2FKolkata"
    with tenant_scope(populated_a.tenant.id):
        before = Message.objects.count()
    page = admin.post(f"{RULES}add/", {"agent_id": "", "days": "1"}, follow=True)
    assert "A change waits" in page.text
    assert "1 day</a>” was added" in page.text
    found = page.context["preview"]
    # In a day all current messages are a day old.
    assert (found.messages, found.users, found.is_bounded) == (before, 2, False)
    assert found.rows["recall events"] == 3
    assert page.context["waiting"].next_days == 1
    with timezone.override("Asia/Kolkata"):
        effective_at = time_text(page.context["waiting"].effective_at)
    assert f"From {effective_at}, conversations" in page.text
    assert effective_at in admin.get(RULES).text
    assert " UTC" not in page.text
    with tenant_scope(populated_a.tenant.id):
        rule = RetentionRule.objects.get()
        assert (rule.days, rule.next_days) == (MAX_DAYS, 1)
        wait = rule.effective_at - rule.created_at
        assert timedelta(hours=23) < wait < timedelta(hours=25)
        apply_due_changes(timezone.now(), by=RETENTION_ACTOR)
        assert RetentionRule.objects.get().days == MAX_DAYS
    with tenant_scope(populated_b.tenant.id):
        assert not RetentionRule.objects.exists()


def test_a_change_that_waits_is_cancelled(
    program_a: Program, program_b: Program, browser: Browser, admin: Client
) -> None:
    admin.post(f"{RULES}add/", {"agent_id": "", "days": "30"})
    with tenant_scope(program_a.tenant.id):
        rule = RetentionRule.objects.get()
    page, unchanged = f"{RULES}{rule.pk}/change/", {"days": str(MAX_DAYS)}
    shown = admin.get(page)
    cancel = f"{RULES}{rule.pk}/delete/"
    # Without this rule there was none: cancelling its first change removes it.
    assert f'action="{cancel}"' in shown.text
    assert f'name="days" value="{MAX_DAYS}"' not in shown.text
    listed = admin.get(RULES).text
    assert "no limit" in listed
    assert str(MAX_DAYS) not in listed
    assert browser(program_b.tenant).post(page, unchanged).status_code == 404
    auditor = browser(program_a.tenant, "view_retentionrule")
    for address in (page, f"{RULES}add/"):
        assert auditor.post(address, unchanged).status_code == 403
    assert "A change waits" not in admin.post(page, unchanged, follow=True).text
    admin.post(page, {"days": "20"})
    take_effect(program_a)
    admin.post(page, {"days": "10"})
    assert 'name="days" value="20"' in admin.get(page).text
    admin.post(page, {"days": "20"})
    take_effect(program_a)
    assert rules(program_a) == [("", 20)]
    page = admin.post(cancel, {"post": "yes"}, headers={"Accept-Language": "es"}, follow=True)
    assert "Se eliminó: regla de" in page.text
    assert rules(program_a) == []


def test_a_rule_that_protects_is_not_deleted(program_a: Program, admin: Client) -> None:
    with tenant_scope(program_a.tenant.id):
        RetentionRule.objects.create(days=30)
        own = RetentionRule.objects.create(agent_id=program_a.agent.pk, days=365)
    page = admin.post(f"{RULES}{own.pk}/delete/", {"post": "yes"}, follow=True)
    assert "Change this rule to 30 days first" in page.text
    chosen = {"action": "delete_selected", "_selected_action": [str(own.pk)], "post": "yes"}
    admin.post(RULES, chosen)
    assert [days for _, days in rules(program_a)] == [30, 365]
    admin.post(f"{RULES}{own.pk}/change/", {"agent_id": "", "days": "30"})
    assert [days for _, days in rules(program_a)] == [30, 365]
    take_effect(program_a)
    admin.post(f"{RULES}{own.pk}/delete/", {"post": "yes"})
    assert rules(program_a) == [("", 30)]


@pytest.mark.parametrize(
    ("agent", "days", "error"),
    [
        ("", "0", "greater than or equal to 1"),
        ("", "99999", "less than or equal to 36500"),
        ("", "many", "whole number"),
        ("00000000-0000-4000-8000-000000000000", "30", "Select a valid choice"),
        ("standing", "30", "already exists"),
    ],
)
def test_invalid_retention_rule_is_refused(
    program_a: Program, admin: Client, agent: str, days: str, error: str
) -> None:
    if agent == "standing":
        agent = str(program_a.agent.pk)
        admin.post(f"{RULES}add/", {"agent_id": agent, "days": "7"})
    before = rules(program_a)
    assert error in admin.post(f"{RULES}add/", {"agent_id": agent, "days": days}).text
    assert rules(program_a) == before
