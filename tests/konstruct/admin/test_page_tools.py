"""Tools of lists on the pages of conversations and people."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from memory.indexing.embedding_jobs import drain
from tenants.admin import list_tools
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.admin.exporting import exported
from tests.konstruct.conftest import Browser, Program, users_shown

PERMISSIONS = {
    "conversations": "view_message",
    "people": "view_scope",
}
DAY = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def program(program_a: Program) -> Program:
    """Tenant A, with messages of three people on three days. One of them writes formulas."""
    for days, user in enumerate(("ann", "=bob()", "carl")):
        add(program_a, user, "=1+1 my sister lives in Lisbon", DAY + timedelta(days=days))
    return program_a


def add(program: Program, user: str, content: str, at: datetime) -> None:
    line = {
        "external_id": f"{user} {at}",
        "agent": program.agent.name,
        "user_id": user,
        "thread_id": f"of {user}",
        "role": "user",
        "content": content,
        "created_at": at.isoformat(),
    }
    answer = program.post("/api/v1/messages/import/", {"messages": [line]})
    assert answer.status_code == 200, answer.content
    drain(program.tenant.id)


def test_conversations_of_a_range_are_listed_and_exported(
    program: Program, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_tools, "BATCH_ROWS", 2)
    page = admin.get("/admin/conversations/?from=2026-01-02&to=2026-01-02")
    assert [row.user_id for row in page.context["cl"].result_list] == ["=bob()"]
    rows = exported(admin, "/admin/conversations/")
    assert [row["user_id"] for row in rows] == ["carl", "'=bob()", "ann"]
    assert rows[0]["agent"] == program.agent.name
    rows = exported(admin, "/admin/conversations/", "?user=ann&to=2026-01-01")
    assert [(row["user_id"], row["thread_id"]) for row in rows] == [("ann", "of ann")]
    (row,) = exported(admin, "/admin/conversations/", "?from=2026-01-02&to=2026-01-02")
    assert (row["user_id"], row["content"][:5]) == ("'=bob()", "'=1+1")
    with tenant_scope(program.tenant.id):
        event = AccessEvent.objects.filter(action="export").latest("id")
    assert (event.subject, event.detail["downloaded_rows"]) == ("conversations", 1)
    assert users_shown(event) == ["=bob()"]


def test_people_are_listed_found_and_exported(
    program: Program, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_tools, "BATCH_ROWS", 2)

    def people_listed(query: str) -> list[str]:
        page = admin.get(f"/admin/people/{query}")
        return [person.user_id for person in page.context["cl"].result_list]

    assert people_listed("") == ["=bob()", "ann", "carl"]
    assert people_listed("?q=ca") == ["carl"]
    rows = exported(admin, "/admin/people/")
    assert [row["user_id"] for row in rows] == ["carl", "ann", "'=bob()"]
    assert exported(admin, "/admin/people/", "?q=nobody") == []


@pytest.mark.parametrize("page", PERMISSIONS)
def test_an_export_of_a_page_takes_its_permission_and_that_to_export(
    program: Program, program_b: Program, browser: Browser, page: str
) -> None:
    address = f"/admin/{page}/export/"
    permission = PERMISSIONS[page]
    assert browser(program.tenant, permission).post(address).status_code == 403
    assert browser(program.tenant, "export_list").post(address).status_code == 403
    client = browser(program.tenant, permission, "export_list")
    assert client.get(address).status_code == 403
    exported(client, f"/admin/{page}/")
    assert "/export/" not in browser(program.tenant, permission).get(f"/admin/{page}/").text
    assert f"{page}/export/?" in client.get(f"/admin/{page}/").text
    other = browser(program_b.tenant)
    assert exported(other, f"/admin/{page}/") == []
