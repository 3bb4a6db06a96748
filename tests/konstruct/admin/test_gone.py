"""Rows that are deleted or erased while a page, a list or a link to them is open."""

from typing import Any
from uuid import UUID, uuid4

from django.test import Client

from memory.facts import LongTermMemory
from memory.models import MemoryEntry
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program

FACTS = "/admin/memory/memoryentry/"


def know(program: Program, *contents: str) -> list[UUID]:
    return [
        LongTermMemory().store(
            MemoryEntry(tenant_id=program.tenant.id, user_id="maria", content=content)
        )
        for content in contents
    ]


def test_a_missing_row_has_a_page_with_a_way_to_the_receipts(
    program_a: Program, browser: Browser, admin: Client, operator: Client
) -> None:
    missing = uuid4()
    message = f"/admin/conversations/{missing}/"
    reader = browser(program_a.tenant, "view_message")
    for answer in (
        admin.get(message),
        admin.get(f"{FACTS}{missing}/change/"),
        admin.post(f"{FACTS}{missing}/delete/", {"post": "yes"}),
    ):
        assert answer.status_code == 404
        assert "/admin/audit/erasurerequest/" in answer.text
        assert "/admin/audit/messageerasure/" in answer.text
        assert "data-keeps-entries" in answer.text
    for answer in (
        reader.get(message),
        operator.get(f"/admin/tenants/tenant/{missing}/change/"),
    ):
        assert answer.status_code == 404
        assert "/admin/audit/erasurerequest/" not in answer.text
    assert reader.get(f"{FACTS}{missing}/change/").status_code == 403


def test_action_lists_rows_that_were_deleted(program_a: Program, admin: Client) -> None:
    with tenant_scope(program_a.tenant.id):
        kept, lost = know(program_a, "Likes tea.", "Likes rain.")
        LongTermMemory().delete(lost, program_a.tenant.id)
    form: dict[str, Any] = {"action": "end_now", "_selected_action": [str(lost)]}
    page = admin.post(FACTS, form, follow=True)
    assert "1 chosen row is not there any more" in page.text
    assert "ended" not in " ".join(str(message) for message in page.context["messages"])
    page = admin.post(FACTS, {**form, "_selected_action": [str(kept), str(lost)]}, follow=True)
    assert "1 chosen row is not there any more" in page.text
    assert "1 ended." in page.text
