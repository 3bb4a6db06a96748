"""Agents, waiting replies and API keys in a tenant's admin."""

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from konstruct.api.auth.admission import admit
from konstruct.api.auth.key_text import parse_key
from konstruct.api.models import ApiKey
from konstruct.orchestrator.exceptions import LLMRefused
from konstruct.orchestrator.models import Agent, PendingReply
from konstruct.orchestrator.replies import outbox
from tenants.context import tenant_scope
from tests.konstruct.conftest import MESSAGES, Program

AGENTS = "/admin/orchestrator/agent/"
REPLIES = "/admin/orchestrator/pendingreply/"
KEYS = "/admin/api/apikey/"


@pytest.fixture
def admin(program_a: Program, browser: Callable[..., Client]) -> Client:
    return browser(program_a.tenant)


def fail(program: Program, content: str = "Hello") -> UUID:
    """Send a message whose reply is given up."""
    message_id = UUID(program.send(content).json()["id"])
    with tenant_scope(program.tenant.id):
        outbox.record_failure(message_id, LLMRefused("No such model: gpt-0."))
    return message_id


AGENT_FORM = {
    "name": "bob",
    "is_active": "on",
    "system_prompt": "Help.",
    "identity": "",
    "persona": "",
    "model_tier": "reasoning",
    "model": "",
    "recall_mode": "hybrid",
    "recall_gate": "on",
    "recall_weights": '{"time": 1}',
}


def test_an_agent_is_made_and_edited(program_a: Program, admin: Client) -> None:
    assert admin.get(f"{AGENTS}add/").status_code == 200
    assert admin.post(f"{AGENTS}add/", AGENT_FORM).status_code == 302
    with tenant_scope(program_a.tenant.id):
        agent = Agent.objects.get(name="bob")
    page = f"{AGENTS}{agent.pk}/change/"
    assert admin.post(page, {**AGENT_FORM, "recall_top_k": "5"}).status_code == 302
    with tenant_scope(program_a.tenant.id):
        agent.refresh_from_db()
    assert (agent.model_tier, agent.recall_top_k) == ("reasoning", 5)
    assert agent.recall_weights == {"time": 1}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "ada"}, "has an agent of that name already"),
        ({"name": str(UUID(int=7))}, "reads as an id"),
        ({"recall_top_k": "500"}, "top_k=500 is more than 100"),
        ({"recall_weights": '{"luck": 1}'}, "names an unknown weight"),
    ],
)
def test_an_agent_that_cannot_be_is_refused_on_the_page(
    program_a: Program, admin: Client, fields: dict[str, str], message: str
) -> None:
    response = admin.post(f"{AGENTS}add/", {**AGENT_FORM, **fields})
    assert response.status_code == 200
    assert message in response.content.decode()
    with tenant_scope(program_a.tenant.id):
        assert Agent.objects.count() == 1


def test_an_agent_cannot_be_deleted(program_a: Program, admin: Client) -> None:
    assert admin.post(f"{AGENTS}{program_a.agent.pk}/delete/").status_code == 403
    with tenant_scope(program_a.tenant.id):
        assert Agent.objects.exists()


def test_another_tenants_agent_is_not_there(
    program_a: Program, program_b: Program, admin: Client
) -> None:
    with tenant_scope(program_b.tenant.id):
        program_b.agent.name = "agent of b"
        program_b.agent.save()
    assert "agent of b" not in admin.get(AGENTS).content.decode()
    assert admin.get(f"{AGENTS}{program_b.agent.pk}/change/").status_code == 302


def test_a_reply_that_was_given_up_is_seen_with_its_reason(
    program_a: Program, admin: Client
) -> None:
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


def test_a_reply_that_was_given_up_is_retried(program_a: Program, admin: Client) -> None:
    chosen = [str(fail(program_a)), program_a.send("waiting").json()["id"]]
    response = admin.post(REPLIES, {"action": "retry", "_selected_action": chosen}, follow=True)
    page = response.content.decode()
    assert "1 tried again." in page
    assert f"The reply to message {chosen[1]} was not given up" in page
    with tenant_scope(program_a.tenant.id):
        assert not PendingReply.objects.failed().exists()
    document = program_a.get(f"{MESSAGES}{chosen[0]}/").json()
    assert (document["status"], document["error"]) == ("queued", None)


def test_who_may_only_look_may_not_retry(
    program_a: Program, browser: Callable[..., Client]
) -> None:
    looker = browser(program_a.tenant, "view_pendingreply")
    chosen = str(fail(program_a))
    assert looker.get(REPLIES).status_code == 200
    looker.post(REPLIES, {"action": "retry", "_selected_action": [chosen]})
    with tenant_scope(program_a.tenant.id):
        assert PendingReply.objects.failed().exists()


def test_a_new_key_is_shown_once_and_works(program_a: Program, admin: Client) -> None:
    response = admin.post(
        f"{KEYS}add/", {"name": "billing", "scopes": ["read", "erase"]}, follow=True
    )
    found = re.search(r"ks_[0-9a-f_]+", response.content.decode())
    assert found is not None
    key = parse_key(found[0])
    assert key is not None
    with tenant_scope(program_a.tenant.id):
        stored = ApiKey.objects.get(name="billing")
        assert admit(key).key == stored
        assert (stored.scopes, stored.agent, stored.user_id) == (["read", "erase"], None, None)
    assert found[0] not in admin.get(KEYS).content.decode()
    assert found[0] not in admin.get(f"{KEYS}{stored.pk}/change/").content.decode()


def test_a_key_is_revoked_and_neither_edited_nor_deleted(program_a: Program, admin: Client) -> None:
    with tenant_scope(program_a.tenant.id):
        key = ApiKey.objects.get()
    assert admin.post(f"{KEYS}{key.pk}/change/", {"name": "x"}).status_code == 403
    assert admin.post(f"{KEYS}{key.pk}/delete/").status_code == 403
    assert program_a.get(MESSAGES).status_code == 200
    form: dict[str, Any] = {"action": "revoke", "_selected_action": [str(key.pk)]}
    assert "1 revoked." in admin.post(KEYS, form, follow=True).content.decode()
    assert program_a.get(MESSAGES).status_code == 401
    assert "revoked" in admin.get(KEYS).content.decode()
