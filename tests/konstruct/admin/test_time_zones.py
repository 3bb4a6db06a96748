"""The time zone of the pages: the browser's, or UTC."""

from datetime import UTC, datetime

import pytest
from django.test import Client

from memory.models import Message
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

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


def test_times_are_shown_with_seconds_in_the_zone_of_the_browser(
    at_noon: Program, admin: Client
) -> None:
    assert time_shown(admin) == "12:30:15"
    admin.cookies["time_zone"] = "Asia%2FTokyo"
    assert time_shown(admin) == "21:30:15"
    admin.cookies["time_zone"] = "Asia%2FNowhere"
    assert time_shown(admin) == "12:30:15"


def test_a_range_of_dates_is_that_of_the_users_days(at_noon: Program, admin: Client) -> None:
    admin.cookies["time_zone"] = "Pacific%2FKiritimati"  # UTC+14
    found = admin.get(f"{MESSAGES}?from=2026-07-02&to=2026-07-02")
    assert found.context["cl"].result_count == 1
