"""Waiting replies in a tenant's admin: listed with their reason, and retried."""

from uuid import UUID

from django.test import Client

from konstruct.llm.exceptions import LLMRefused
from konstruct.orchestrator import replies
from konstruct.orchestrator.models import PendingReply
from tenants.context import tenant_scope
from tests.konstruct.conftest import MESSAGES, Program

REPLIES = "/admin/orchestrator/pendingreply/"


def fail(program: Program, content: str = "Hello") -> UUID:
    """Send a message whose reply is given up."""
    message_id = UUID(program.send(content).json()["id"])
    with tenant_scope(program.tenant.id):
        replies.REPLIES.record_failure(message_id, LLMRefused("No such model: gpt-0."))
    return message_id


def test_failed_reply_is_shown_with_its_error(program_a: Program, admin: Client) -> None:
    fail(program_a, "answer me")
    program_a.send("still waiting")
    page = admin.get(REPLIES).content.decode()
    assert "answer me" in page
    assert "No such model: gpt-0." in page
    assert "still waiting" in page
    failed = admin.get(f"{REPLIES}?state=failed").content.decode()
    assert ("answer me" in failed, "still waiting" in failed) == (True, False)


def test_a_waiting_reply_can_only_be_looked_at(program_a: Program, admin: Client) -> None:
    message_id = fail(program_a)
    page = f"{REPLIES}{message_id}/change/"
    assert admin.get(page).status_code == 200
    assert admin.post(page, {"attempts": "0"}).status_code == 403
    assert admin.get(f"{REPLIES}add/").status_code == 403
    assert admin.post(f"{REPLIES}{message_id}/delete/").status_code == 403
    with tenant_scope(program_a.tenant.id):
        assert PendingReply.objects.get().attempts == 1


def test_failed_reply_is_retried(program_a: Program, admin: Client) -> None:
    chosen = [str(fail(program_a)), program_a.send("waiting").json()["id"]]
    response = admin.post(REPLIES, {"action": "retry", "_selected_action": chosen}, follow=True)
    page = response.content.decode()
    assert "1 retried." in page
    assert "1 had not failed." in page
    with tenant_scope(program_a.tenant.id):
        assert not PendingReply.objects.failed().exists()
    document = program_a.get(f"{MESSAGES}{chosen[0]}/").json()
    assert (document["status"], document["error"]) == ("queued", None)
