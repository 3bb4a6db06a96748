"""The dashboard: numbers that are right, and lead to their rows."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.test import Client

from memory.browse import statistics
from memory.browse.statistics import busiest, messages_per_day, recalls_per_day
from memory.conversations.transcript import record_message
from memory.models import Message, RecallEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

DASHBOARD = "/admin/"


def test_the_numbers_are_the_tenants(populated_a: Program, browser: Callable[..., Client]) -> None:
    page = browser(populated_a.tenant).get(DASHBOARD)
    figures = {figure["label"]: figure["value"] for figure in page.context["figures"]}
    size = figures.pop("Memory on disk")
    assert re.fullmatch(r"[\d.]+\xa0[KM]B", size)
    assert figures == {
        "Messages": "9",  # one of them was written by store_embedding
        "People": "1",
        "Memories": figures["Memories"],
        "Recalls": "3",
        "Facts": "1",
        "Replies queued": "1",
        "Replies failed": "1",
        "Embeddings queued": "2",
        "Embeddings failed": "0",
    }
    assert int(figures["Memories"]) >= 7


@pytest.mark.slow
def test_every_number_and_every_bar_leads_to_its_rows(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    client = browser(populated_a.tenant)
    page = client.get(DASHBOARD)
    links = {figure["link"] for figure in page.context["figures"]}
    links |= {bar["link"] for chart in page.context["charts"] for bar in chart["bars"]}
    for link in links:
        assert f'href="{link}"' in unescape(page.text) or "created_at" in link
        assert client.get(link).status_code == 200
    messages, recalls = page.context["charts"]
    assert client.get(messages["bars"][-1]["link"]).context["cl"].result_count == 9
    assert client.get(messages["bars"][-2]["link"]).context["cl"].result_count == 0
    assert client.get(recalls["bars"][-1]["link"]).context["cl"].result_count == 3


def test_days_are_counted_apart(program_a: Program) -> None:
    today = datetime.now(UTC)
    for days_ago, count in ((0, 2), (1, 1), (6, 3), (7, 5)):
        for number in range(count):
            record_message(
                tenant_id=program_a.tenant.id,
                agent_id=program_a.agent.pk,
                user_id=f"u{number}",
                thread_id="t",
                channel="import",
                role="user",
                content="x",
                created_at=today - timedelta(days=days_ago),
            )
    with tenant_scope(program_a.tenant.id):
        assert [day.count for day in messages_per_day(7)] == [3, 0, 0, 0, 0, 1, 2]
        assert busiest(2) == (
            [(program_a.agent.pk, 11)],
            [((program_a.agent.pk, "u0"), 4), ((program_a.agent.pk, "u1"), 3)],
        )


@pytest.mark.slow
def test_days_of_a_large_table_are_estimated_from_some_of_its_blocks(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = datetime.now(UTC)
    with tenant_scope(program_a.tenant.id):
        Message.objects.bulk_create(
            Message(
                agent_id=program_a.agent.pk,
                user_id="u",
                thread_id="t",
                channel="import",
                role="user",
                content="x" * 200,
                created_at=today - timedelta(days=number % 2),
            )
            for number in range(6000)
        )
        assert [day.count for day in messages_per_day(3)] == [0, 3000, 3000]
        monkeypatch.setattr(statistics, "COUNTED_PER_DAY", 3000)
        before, yesterday, now = (day.count for day in messages_per_day(3))
    assert before == 0
    # Half of the blocks were looked at, which ones is up to Postgres.
    assert 1500 < yesterday < 4500
    assert abs(yesterday - now) < 300


def test_recalls_are_told_apart_by_whether_they_found_something(program_a: Program) -> None:
    with tenant_scope(program_a.tenant.id):
        for abstained in (True, True, False):
            RecallEvent.objects.create(
                agent_id=program_a.agent.pk,
                user_id="maria",
                query="q",
                hits=[],
                cut=[],
                injected=[],
                abstained=abstained,
                embedding_model="m",
                milliseconds=1.0,
            )
        today = recalls_per_day(2)[-1]
        assert (today.count, today.found) == (3, 1)


def test_who_may_not_read_messages_has_no_numbers(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    page = browser(populated_a.tenant, "view_agent").get(DASHBOARD)
    assert page.status_code == 200
    assert "figures" not in page.context


def test_an_empty_tenant_has_a_dashboard_too(
    program_a: Program, browser: Callable[..., Client]
) -> None:
    page = browser(program_a.tenant).get(DASHBOARD)
    assert page.status_code == 200
    with tenant_scope(program_a.tenant.id):
        assert not Message.objects.exists()
