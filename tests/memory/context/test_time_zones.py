"""Times of prompts are in the time zone of the user, or else of the agent, or else UTC."""

from datetime import datetime

import pytest

from konstruct.orchestrator.builder import date_clause
from memory.context import ContextManager
from tenants.audit.people import set_time_zone, time_zone_of
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.memory.conftest import AGENT

BREAKFAST = "2026-03-08T23:10:00+00:00"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("chosen", "of_channel", "of_agent", "zone", "day"),
    [
        ("Asia/Tokyo", "America/Lima", "", "Asia/Tokyo", "Monday, 2026-03-09 08:10"),
        ("", "America/Lima", "Asia/Tokyo", "America/Lima", "Sunday, 2026-03-08 18:10"),
        ("", "", "Europe/Berlin", "Europe/Berlin", "Monday, 2026-03-09 00:10"),
        ("", "", "", "UTC", "Sunday, 2026-03-08 23:10"),
    ],
)
def test_prompts_have_times_in_the_zone_of_the_user(
    tenant_a: Tenant, chosen: str, of_channel: str, of_agent: str, zone: str, day: str
) -> None:
    with tenant_scope(tenant_a.id):
        set_time_zone(["kenji"], chosen)
        set_time_zone(["kenji"], of_channel, is_of_channel=True)
        assert time_zone_of("kenji", of_agent).key == zone
    turns = [
        {"role": "user", "content": "I fly tomorrow.", "at": BREAKFAST},
        {"role": "assistant", "content": "Have a good flight."},
    ]
    manager = ContextManager()
    gathered = manager.gather(
        tenant_a.id, "t", "When?", agent_id=AGENT, user_id="kenji", session_messages=turns,
        time_zone=of_agent,
    )  # fmt: skip
    prompt = manager.fit(gathered, date_clause(datetime.fromisoformat(BREAKFAST), gathered.zone))
    texts = [message["content"] for message in prompt.messages]
    assert f"The current date and time is {day} ({zone})." in texts[0]
    assert f"[{day}] I fly tomorrow." in texts[1]
