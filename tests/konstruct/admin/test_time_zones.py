"""The time zone of the pages: the user's own, or the tenant's, or the browser's, or UTC."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client

from konstruct.orchestrator.models import TeamTimeZone
from memory.models import Message
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

PAGE = "/admin/time-zone/"
MESSAGES = "/admin/memory/message/"


@pytest.fixture
def at_noon(program_a: Program) -> Program:
    """A message at noon, UTC, in summer."""
    with tenant_scope(program_a.tenant.id):
        Message.objects.create(
            agent_id=program_a.agent.pk, user_id="maria", thread_id="t", channel="rest",
            role="user", content="Hi", created_at=datetime(2026, 7, 1, 12, 30, 15, tzinfo=UTC),
        )  # fmt: skip
    return program_a


def time_shown(client: Client) -> str:
    page = client.get(MESSAGES).text
    return page.partition("1 Jul 2026, ")[2][:8]


def test_times_are_shown_with_seconds_in_the_zone_of_the_user(
    at_noon: Program, browser: Callable[..., Client]
) -> None:
    client = browser(at_noon.tenant)
    assert time_shown(client) == "12:30:15"
    client.cookies["time_zone"] = "Asia%2FTokyo"
    assert time_shown(client) == "21:30:15"
    client.post(PAGE, {"for": "all", "zone": "America/New_York"})
    assert time_shown(client) == "08:30:15"
    client.post(PAGE, {"for": "me", "zone": "Europe/Berlin"})
    assert time_shown(client) == "14:30:15"
    assert "Europe/Berlin" in client.get(PAGE).text
    assert time_shown(browser(at_noon.tenant)) == "08:30:15"
    client.post(PAGE, {"for": "me", "zone": ""})
    client.post(PAGE, {"for": "all", "zone": ""})
    assert time_shown(client) == "21:30:15"
    with tenant_scope(at_noon.tenant.id):
        assert not TeamTimeZone.objects.exists()
        assert AccessEvent.objects.filter(action="edit", subject="time zone").count() == 4


def test_a_range_of_dates_is_that_of_the_users_days(
    at_noon: Program, browser: Callable[..., Client]
) -> None:
    client = browser(at_noon.tenant)
    client.cookies["time_zone"] = "Pacific%2FKiritimati"  # UTC+14
    found = client.get(f"{MESSAGES}?from=2026-07-02&to=2026-07-02")
    assert found.context["cl"].result_count == 1


def test_time_zone_of_others_requires_the_permission_to_manage_the_team_of_the_tenant(
    at_noon: Program, program_b: Program, browser: Callable[..., Client]
) -> None:
    auditor = browser(at_noon.tenant, "view_message")
    assert 'value="all"' not in auditor.get(PAGE).text
    auditor.post(PAGE, {"for": "all", "zone": "Asia/Tokyo"})
    with tenant_scope(at_noon.tenant.id):
        member = TeamTimeZone.objects.get().member_id
        assert User.objects.filter(pk=member).exists()
    with tenant_scope(program_b.tenant.id):
        assert not TeamTimeZone.objects.exists()
    assert time_shown(browser(at_noon.tenant)) == "12:30:15"
    assert browser(at_noon.tenant, "view_agent").get(PAGE).status_code == 403
