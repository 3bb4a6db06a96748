"""A window in the admin: the turns that the agent sees, and a logged clear."""

from django.test import Client

from memory.conversations.short_term import append_message, get_recent_messages
from memory.conversations.window_store import list_windows
from memory.models import Message, WindowClear
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program, SendMessage, user_of

WINDOW, CLEAR = "/admin/window/", "/admin/window/clear/"


def test_a_window_is_shown_and_cleared(
    program_a: Program, browser: Browser, send_message: SendMessage
) -> None:
    send_message(program_a, "Hello there")
    tenant, agent = program_a.tenant, program_a.agent
    query = f"?agent={agent.pk}&user=maria"
    client = browser(tenant)
    page = client.get(WINDOW + query).text
    for text in ("Hello there", "This cannot be undone."):
        assert text in page
    assert client.get(CLEAR + query).status_code == 403
    done = client.post(CLEAR + query, follow=True)
    assert "The recent turns are cleared." in done.text
    assert get_recent_messages(tenant.id, agent.pk, "maria") == []
    with tenant_scope(tenant.id):
        event = AccessEvent.objects.get(action="clear")
        assert (event.subject, user_of(event), event.agent_id) == ("window", "maria", agent.pk)
        assert WindowClear.objects.count() == 1
        assert Message.objects.count() == 2


def test_window_without_a_conversation_is_not_found(
    program_a: Program, program_b: Program, admin: Client
) -> None:
    for query in ("", "?agent=x&user=y", f"?agent={program_b.agent.pk}&user=maria"):
        assert admin.get(WINDOW + query).status_code == 404
        assert admin.post(CLEAR + query).status_code == 404


def test_windows_are_listed_also_without_a_message(
    program_a: Program, program_b: Program, browser: Browser
) -> None:
    tenant, agent = program_a.tenant, program_a.agent
    append_message(tenant.id, agent.pk, "U:7%", "user", "Only appended")
    append_message(tenant.id, "no-agent", "ann", "user", "To a program's agent")
    append_message(program_b.tenant.id, program_b.agent.pk, "ben", "user", "Of another tenant")
    page = browser(tenant, "view_windowclear").get("/admin/windows/")
    found = {(row.agent_id, row.user_id, row.turns) for row, *_ in page.context["rows"]}
    assert found == {(str(agent.pk), "U:7%", 1), ("no-agent", "ann", 1)}
    assert "Only appended" in page.text
    assert f"/admin/window/?agent={agent.pk}&amp;user=U%3A7%25" in page.text
    assert browser(tenant, "view_message").get("/admin/windows/").status_code == 403
    with tenant_scope(program_b.tenant.id):
        assert [row.user_id for row in list_windows()[0]] == ["ben"]
