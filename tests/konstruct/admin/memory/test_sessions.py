"""Sessions of graphs, and windows of shared threads: read, cleared, and separate."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from konstruct.admin import rows
from memory.conversations.transcript import add_items
from memory.models import ConversationItem, Message
from tenants.audit.models import AccessEvent
from tenants.audit.roles import role_permissions
from tenants.context import tenant_scope
from tests import database
from tests.konstruct.api.seed_data import talk
from tests.konstruct.conftest import Browser, Program
from tests.messages import statements

# LangGraph has its own connections, which do not see uncommitted rows of a test.
pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/sessions/"
HOSTILE = '"><script>/?#%' + "x" * 150


@pytest.fixture(autouse=True)
def without_earlier_sessions(transactional_db: None) -> None:
    """Remove rows that LangGraph's connections committed in earlier tests."""
    database.remove_committed_rows()


def page_of(thread_id: str, page: str = "") -> str:
    return f"{LIST}session/{page}?{urlencode({'thread': thread_id})}"


def listed(client: Client, query: str = "") -> list[str]:
    page = client.get(f"{LIST}{query}")
    assert page.status_code == 200
    return [session.thread_id for session in page.context["sessions"]]


def test_sessions_are_listed_in_pages_and_found(
    program_a: Program, program_b: Program, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "PER_PAGE", 2)
    client = browser(program_a.tenant, "view_message")
    assert listed(client) == []
    for thread_id in ("one", "two", "three", "one"):
        talk(program_a, thread_id, "Hello")
    first = client.get(LIST)
    assert listed(client) == ["one", "three"]
    assert 'href="?before=three"' in first.text
    assert listed(client, "?before=three") == ["two"]
    assert listed(client, "?thread=two") == ["two"]
    everywhere = browser(program_a.tenant, "view_message", "search_everyone")
    for address in ("search/?q=two", "palette/?extended=1&s=two"):
        assert page_of("two") in everywhere.get(f"/admin/{address}").text
    for odd in ("?thread=none", "?thread=%00", "?before=%00", f"?thread={'x' * 3000}"):
        assert set(listed(client, odd)) <= {"one", "three"}
    other = browser(program_b.tenant)
    assert listed(other) == []
    assert other.get(page_of("one")).status_code == 404
    assert other.post(page_of("one", "clear/")).status_code == 404


def test_a_session_is_read_as_text_and_cleared_after_a_confirmation(
    program_a: Program, browser: Browser, admin: Client
) -> None:
    talk(program_a, HOSTILE, "My sister <b>visits</b>", "x" * 100_000)
    reader = browser(program_a.tenant, "view_message")
    page = reader.get(page_of(HOSTILE))
    assert [turn["role"] for turn in page.context["turns"]] == ["user", "user"]
    assert "My sister &lt;b&gt;visits&lt;/b&gt;" in page.text
    assert '"><script>' not in page.text
    assert "x" * 5_000 not in page.text
    clear = page_of(HOSTILE, "clear/")
    assert clear not in page.text.replace("&amp;", "&")
    assert reader.post(clear).status_code == 403
    assert "cannot be undone" in admin.get(page_of(HOSTILE)).text
    assert listed(admin) == [HOSTILE]
    assert admin.post(clear)["Location"] == LIST
    assert listed(admin) == []
    assert admin.get(page_of(HOSTILE)).status_code == 404
    with tenant_scope(program_a.tenant.id):
        events = AccessEvent.objects.filter(subject="session").order_by("id")
        logged = [(event.action, event.detail) for event in events]
    assert logged == [("view", {}), ("view", {}), ("clear", {})]


def test_an_admin_clears_sessions_by_page_and_by_rest_and_deletes_no_items(
    program_a: Program, browser: Browser
) -> None:
    talk(program_a, "by page", "Hello")
    talk(program_a, "by REST", "Hello")
    with tenant_scope(program_a.tenant.id):
        add_items(program_a.agent.pk, "maria", "monday", [({"text": "Hello"}, None)])
        item = ConversationItem.objects.get()
    codenames = [permission.split(".")[1] for permission in role_permissions()["admin"]]
    admin = browser(program_a.tenant, *codenames)
    assert admin.post(page_of("by page", "clear/")).status_code == 302
    assert admin.delete("/api/v1/sessions/by%20REST/").status_code == 204
    assert listed(admin) == []
    for address in (
        f"/api/v1/conversations/items/{item.pk}/",
        f"/api/v1/conversations/items/?agent={program_a.agent.pk}&user_id=maria&thread_id=monday",
    ):
        refused = admin.delete(address)
        assert (refused.status_code, "memory.delete_message" in refused.text) == (403, True)
    with tenant_scope(program_a.tenant.id):
        assert ConversationItem.objects.filter(pk=item.pk).exists()


def test_the_pages_of_a_session_keep_their_budgets(program_a: Program, admin: Client) -> None:
    talk(program_a, "one", "Hello")

    def cost(address: str) -> int:
        with statements() as sent:
            assert admin.get(address).status_code == 200
        return len(sent)

    admin.get(LIST)
    addresses = (LIST, page_of("one"))
    few = [cost(address) for address in addresses]
    assert max(few) <= 12
    for number in range(20):
        talk(program_a, f"thread {number}", "Hello")
    talk(program_a, "one", *map(str, range(30)))
    assert [cost(address) for address in addresses] == few


def test_the_window_of_a_shared_thread_has_the_turns_of_all(
    program_a: Program, program_b: Program, browser: Browser
) -> None:
    def add_message(user: str, channel: str = "slack", **fields: Any) -> Message:
        with tenant_scope(program_a.tenant.id):
            return Message.objects.create(
                agent_id=program_a.agent.pk,
                user_id=user,
                thread_id="C1:1",
                channel=channel,
                role="user",
                content=f"I am {user} <b>",
                **fields,
            )

    first = add_message("maria", name="Maria")
    add_message("theo")
    add_message("eve", channel="rest")
    client = browser(program_a.tenant, "view_windowclear", "view_message")
    address = f"/admin/conversations/{first.pk}/thread/"
    page = client.get(address)
    assert [turn["user_id"] for turn in page.context["recent"]] == ["maria", "theo"]
    assert "I am theo &lt;b&gt;" in page.text
    assert f"{address}#recent" in client.get(f"/admin/conversations/{first.pk}/").text
    assert browser(program_a.tenant, "view_message").get(address).context["recent"] is None
    assert browser(program_b.tenant).get(address).status_code == 404
    alone = add_message("zoe", channel="rest")
    assert client.get(f"/admin/conversations/{alone.pk}/thread/").context["recent"] is None
    assert "#recent" not in client.get(f"/admin/conversations/{alone.pk}/").text
