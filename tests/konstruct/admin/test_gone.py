"""Rows that are deleted or erased while a page, a list or a link to them is open."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import call_command
from django.test import Client

from konstruct.orchestrator.identities.erasure_requests import request_message_erasure
from konstruct.orchestrator.models import NotificationRecipient
from memory.facts import LongTermMemory
from memory.models import MemoryEntry, Message
from tenants.audit.access_log import Actor, ActorKind
from tenants.context import tenant_scope
from tests import database
from tests.konstruct.conftest import Program

FACTS = "/admin/memory/memoryentry/"
EVA = Actor(ActorKind.PERSON, "1", "eva")


def know(program: Program, *contents: str) -> list[UUID]:
    return [
        LongTermMemory().store(
            MemoryEntry(tenant_id=program.tenant.id, user_id="maria", content=content)
        )
        for content in contents
    ]


def test_a_deleted_row_has_a_page_with_a_way_to_its_list(
    program_a: Program, browser: Callable[..., Client]
) -> None:
    client = browser(program_a.tenant)
    with tenant_scope(program_a.tenant.id):
        row = NotificationRecipient.objects.create(
            destination="mail", email="desk@example.org", events=["erasure_due"]
        )
    address = f"/admin/orchestrator/notificationrecipient/{row.pk}/"
    assert client.get(f"{address}change/").status_code == 200
    with tenant_scope(program_a.tenant.id):
        row.delete()
    for answer in (
        client.get(f"{address}change/"),
        client.post(f"{address}change/", {"destination": "mail"}),
        client.post(f"{address}delete/", {"post": "yes"}),
        client.get(f"{address}history/"),
    ):
        assert answer.status_code == 404
        assert "This does not exist any more" in answer.text
        assert 'href="/admin/orchestrator/notificationrecipient/"' in answer.text
        assert "data-keeps-entries" in answer.text


def test_links_of_pages_and_of_the_palette_open_the_page_of_a_deleted_row(
    program_a: Program, browser: Callable[..., Client], operator: Client
) -> None:
    missing = uuid4()
    client = browser(program_a.tenant)
    for address, lists in (
        (f"/admin/conversations/{missing}/", "/admin/memory/message/"),
        (f"/admin/escalations/{missing}/", "/admin/orchestrator/escalation/"),
        (f"/admin/agents/{missing}/try/", "/admin/orchestrator/agent/"),
        (f"{FACTS}{missing}/change/", FACTS),
    ):
        page = client.get(address)
        assert page.status_code == 404
        assert f'href="{lists}"' in page.text
    assert "/admin/audit/erasurerequest/" in page.text
    reader = browser(program_a.tenant, "view_message")
    assert "/admin/audit/erasurerequest/" not in reader.get(f"/admin/conversations/{missing}/").text
    assert reader.get(f"{FACTS}{missing}/change/").status_code == 403
    page = operator.get(f"/admin/tenants/tenant/{missing}/change/")
    assert page.status_code == 404
    assert 'href="/admin/tenants/tenant/"' in page.text


@pytest.mark.django_db(transaction=True)
def test_an_erased_message_leads_to_its_receipt(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    with tenant_scope(populated_a.tenant.id):
        message = Message.objects.filter(role="user").earliest("number")
        erasure = request_message_erasure(
            agent_id=message.agent_id, user_id=message.user_id, thread_id=message.thread_id,
            message_id=message.pk, by=EVA,
        )  # fmt: skip
    with database.as_owner():
        call_command("owner_worker", once=True, verbosity=0)
    client = browser(populated_a.tenant)
    page = client.get(f"/admin/conversations/{message.pk}/")
    assert page.status_code == 404
    assert f'href="/admin/erased-messages/{erasure.pk}/"' in page.text
    assert client.get(f"/admin/erased-messages/{erasure.pk}/").status_code == 200


def test_action_lists_rows_that_were_deleted(
    program_a: Program, browser: Callable[..., Client]
) -> None:
    client = browser(program_a.tenant)
    with tenant_scope(program_a.tenant.id):
        kept, lost = know(program_a, "Likes tea.", "Likes rain.")
        LongTermMemory().delete(lost, program_a.tenant.id)
    form: dict[str, Any] = {"action": "end_now", "_selected_action": [str(lost)]}
    page = client.post(FACTS, form, follow=True)
    assert "1 chosen row is not there any more" in page.text
    assert "ended" not in " ".join(str(message) for message in page.context["messages"])
    page = client.post(FACTS, {**form, "_selected_action": [str(kept), str(lost)]}, follow=True)
    assert "1 chosen row is not there any more" in page.text
    assert "1 ended." in page.text
