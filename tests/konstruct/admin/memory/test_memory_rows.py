"""The tables of memory in the admin: rows of this tenant only; cleared, retried."""

from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client

from konstruct.api.models import ApiKey
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import Agent
from memory import models
from memory.conversations.transcript import record_message
from memory.facts import SYSTEM, exclude_from_recall
from memory.indexing import EMBEDDINGS
from tenants.admin.sites import operator_site, tenant_site
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.jobs import claimable
from tests.konstruct.conftest import Browser, Program, SendMessage
from tests.konstruct.extracted import add_run, propose

# Parts of an index, without use for a person; the page of people shows names.
NOT_SHOWN = {
    *(
        models.Posting,
        models.IndexedMessage,
        models.MemoryAttribute,
        models.MessageAttribute,
        models.PersonName,
        models.PromptSource,
    ),
}
SHOWN = [model for model in apps.get_app_config("memory").get_models() if model not in NOT_SHOWN]
MESSAGES = "/admin/memory/message/"
PENDING = "/admin/memory/pendingembedding/"


def changelist(model: type[Model]) -> str:
    return f"/admin/memory/{model._meta.model_name}/"


@pytest.fixture
def program_a(db: None, module_populated: Program) -> Program:
    return module_populated


def test_every_model_is_shown_to_tenants_and_none_to_operators() -> None:
    assert [model for model in SHOWN if not tenant_site.is_registered(model)] == []
    assert [model for model in SHOWN if operator_site.is_registered(model)] == []


@pytest.mark.slow
def test_lists_and_pages_show_this_tenant_and_no_other(
    program_a: Program, populated_b: Program, admin: Client
) -> None:
    for program in (program_a, populated_b):
        with tenant_scope(program.tenant.id):
            message = models.Message.objects.filter(content__contains="Lisbon").earliest("number")
            exclude_from_recall(message, author=SYSTEM)
            thread = {"user_id": message.user_id, "thread_id": message.thread_id}
            models.Conversation.objects.create(agent_id=message.agent_id, **thread, title="A visit")
        propose(message, "Lisbon", "Maria's sister lives in Lisbon.")
    for model in SHOWN:
        page = admin.get(changelist(model))
        assert (model, page.status_code) == (model, 200)
        assert "tenant-b" not in page.text
        with tenant_scope(program_a.tenant.id):
            keys = list(model._default_manager.values_list("pk", flat=True))
        with tenant_scope(populated_b.tenant.id):
            foreign = list(model._default_manager.values_list("pk", flat=True))
        assert admin.get(f"{changelist(model)}{keys[0]}/change/").status_code == 200
        for key in set(foreign) - set(keys):
            assert admin.get(f"{changelist(model)}{key}/change/").status_code == 404
    evidence = admin.get("/admin/memory/factevidence/").text
    assert all(f">{text}</a>" in evidence for text in ("Open fact", "Open conversation"))


def record(tenant: Tenant, **fields: Any) -> models.Message:
    """Record a turn without sending or embedding it."""
    turn = {"agent_id": uuid4(), "user_id": "maria", "thread_id": "t", "channel": "rest"}
    return record_message(tenant_id=tenant.id, **{**turn, "role": "user", **fields})[0]


def test_a_message_shows_the_way_to_its_conversation(program_a: Program, admin: Client) -> None:
    with tenant_scope(program_a.tenant.id):
        message = models.Message.objects.get(content__startswith="My sister", role="user")
    page = admin.get(f"{MESSAGES}{message.pk}/change/").text
    assert f'href="/admin/conversations/{message.pk}/"' in page


def test_a_recall_event_leads_to_the_reply(program_a: Program, admin: Client) -> None:
    with tenant_scope(program_a.tenant.id):
        event = models.RecallEvent.objects.first()
    assert event is not None
    page = admin.get(f"/admin/memory/recallevent/{event.pk}/change/").text
    assert f"/admin/conversations/{event.reply_id}/?why={event.reply_id}" in page


def test_failed_embedding_is_retried(tenant_b: Tenant, browser: Browser) -> None:
    message = record(tenant_b, content="This is poison.")
    with tenant_scope(tenant_b.id):
        EMBEDDINGS.jobs().update(attempts=3, last_error="ValueError: cannot index poison")
    client = browser(tenant_b)
    failed = client.get(PENDING, {"state": "failed"}).text
    assert "ValueError: cannot index poison" in failed
    assert "This is poison." not in client.get(PENDING, {"state": "queued"}).text
    act = {"action": "retry", "_selected_action": [message.pk]}
    browser(tenant_b, "view_pendingembedding").post(PENDING, act)
    with tenant_scope(tenant_b.id):
        assert message.pk not in claimable(EMBEDDINGS)
    assert "1 retried." in client.post(PENDING, act, follow=True).text
    with tenant_scope(tenant_b.id):
        assert message.pk in claimable(EMBEDDINGS)


def test_cookie_of_one_tenant_is_refused_by_another(
    program_a: Program, tenant_b: Tenant, admin: Client
) -> None:
    pages = [changelist(model) for model in SHOWN]
    for address in [*pages, "/admin/conversations/", "/admin/people/"]:
        answer = admin.get(address, headers={"host": "tenant-b.localhost"})
        assert (answer.status_code, "login" in answer["Location"]) == (302, True)


def test_rows_name_people_agents_keys_and_members_of_the_team(
    program_a: Program, browser: Browser, admin: Client, send_message: SendMessage
) -> None:
    program = program_a
    first = send_message(program, "Hello", user_id="U7", thread_id="u", answered=False)
    send_message(program, "It is me", user_id="U7", thread_id="u", answered=False, name="Dora")
    page = admin.get(MESSAGES)
    assert '<bdi>Dora</bdi> <bdi class="k-id" title="U7">U7</bdi>' in page.text
    assert "Dora (U7)" in admin.get(f"{MESSAGES}{first.pk}/change/").text
    with tenant_scope(program.tenant.id):
        person, key = User.objects.create(username="eva"), ApiKey.objects.latest("created_at")
        bert = create_agent(tenant_id=program.tenant.id, name="bert")
        Agent.objects.filter(pk=program.agent.pk).update(
            hands_to=[bert.pk], hand_over_on={"invoice": str(bert.pk)}
        )
        runs = [
            (add_run(first, requested_by=f"person:{person.pk}"), "eva"),
            (add_run(first, requested_by=f"program:{key.pk}"), key.name),
        ]
    for run, name in runs:
        page = admin.get(f"/admin/orchestrator/extractionrun/{run.pk}/change/")
        assert f"requested by <bdi>{name}</bdi>" in page.text
        assert run.requested_by not in page.text
    auditor = browser(program.tenant, "view_agent")
    settings = auditor.get(f"/admin/orchestrator/agent/{program.agent.pk}/change/").text
    assert str(bert.pk) not in settings
    assert "bert" in settings
