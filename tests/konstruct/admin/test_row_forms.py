"""Two people with the same form: the second save is refused, and names the lost changes."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from django.db import connections
from django.db.models import Model
from django.test import Client

from konstruct.api.models import ApiKey
from konstruct.orchestrator.models import Agent, Escalation, SavedQuestion
from memory.facts import LongTermMemory
from memory.models import MemoryEntry, Message
from tenants.admin.recorded_admin import ROW_ID, VERSION
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tenants.outbox.models import Subscription
from tests.konstruct.admin.agents.test_agents import AGENT_FORM
from tests.konstruct.conftest import Browser, Program

FORM = {**AGENT_FORM, "name": "ada", "recall_weights": "{}"}
_VERSION = re.compile(rf'name="{VERSION}" value="([^"]+)"')


def version_in(page: Any) -> str:
    found = _VERSION.search(page.text)
    assert found is not None
    return found[1]


def opened(client: Client, address: str) -> str:
    page = client.get(address)
    assert page.status_code == 200
    return version_in(page)


def stored(program: Program) -> Agent:
    with tenant_scope(program.tenant.id):
        return Agent.objects.get(pk=program.agent.pk)


def test_second_save_is_refused_and_keeps_the_input(program_a: Program, browser: Browser) -> None:
    first, second = browser(program_a.tenant), browser(program_a.tenant)
    address = f"/admin/orchestrator/agent/{program_a.agent.pk}/change/"
    version = opened(second, address)
    assert first.post(address, {**FORM, "persona": "Kind.", VERSION: version}).status_code == 302

    refused = second.post(address, {**FORM, "identity": "Of second.", VERSION: version})
    assert refused.status_code == 200
    assert stored(program_a).persona == "Kind."
    (error,) = refused.context["adminform"].form.non_field_errors()
    assert "opened it: Persona." in error
    assert "Identity" not in error
    assert "Of second." in refused.text
    # Until the page is opened again.
    again = {**FORM, "identity": "Of second.", VERSION: version_in(refused)}
    assert second.post(address, again).status_code == 200
    again[VERSION] = opened(second, address)
    assert second.post(address, again).status_code == 302
    agent = stored(program_a)
    assert (agent.persona, agent.identity) == ("", "Of second.")


def test_equal_changes_are_no_conflict(program_a: Program, admin: Client) -> None:
    address = f"/admin/orchestrator/agent/{program_a.agent.pk}/change/"
    form = {**FORM, "persona": "Kind.", VERSION: opened(admin, address)}
    for _ in range(2):
        assert admin.post(address, form).status_code == 302


def test_a_fact_that_a_program_changed_is_refused(populated_a: Program, admin: Client) -> None:
    with tenant_scope(populated_a.tenant.id):
        fact = MemoryEntry.objects.entries().get()
    address = f"/admin/memory/memoryentry/{fact.pk}/change/"
    form = {"content": "Likes coffee.", "metadata": "{}", VERSION: opened(admin, address)}
    answer = populated_a.write("PATCH", f"/api/v1/facts/{fact.pk}/", {"content": "Likes water."})
    assert answer.status_code == 200, answer.content
    refused = admin.post(address, form)
    (error,) = refused.context["adminform"].form.non_field_errors()
    with tenant_scope(populated_a.tenant.id):
        assert LongTermMemory().history(fact.pk, populated_a.tenant.id)[0].content == "Likes water."
    assert "opened it: Content" in error


@pytest.mark.django_db(transaction=True)
def test_second_of_two_concurrent_saves_is_refused(program_a: Program, browser: Browser) -> None:
    clients = [browser(program_a.tenant), browser(program_a.tenant)]
    address = f"/admin/orchestrator/agent/{program_a.agent.pk}/change/"
    version = opened(clients[0], address)

    def save(number: int) -> int:
        try:
            form = {**FORM, "persona": f"Of {number}.", VERSION: version}
            return clients[number].post(address, form).status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(save, range(2))) == [200, 302]


KEY = {"name": "billing", "scopes": ["read"]}
RECIPIENT = {
    "target": "mail", "addresses": "desk@example.org", "types": ["erasure.requested"],
    "wait_minutes": "10", "review_threshold": "5", "is_active": "on",
}  # fmt: skip
FORMS: list[tuple[type[Model], str, dict[str, Any], int]] = [
    (ApiKey, "/admin/api/apikey/add/", KEY, 200),
    (Subscription, "/admin/outbox/subscription/add/", RECIPIENT, 302),
    (SavedQuestion, "/admin/agents/{agent}/try/", {"content": "Who are you?", "do": "save"}, 302),
]


def made(program: Program, model: type[Model]) -> int:
    """Count the rows, except the key of the program itself."""
    with tenant_scope(program.tenant.id):
        return model._default_manager.count() - (model is ApiKey)


@pytest.mark.parametrize(("model", "address", "entries", "status"), FORMS)
def test_second_post_of_a_form_is_refused_once_with_its_entries(
    program_a: Program, admin: Client,
    model: type[Model], address: str, entries: dict[str, Any], status: int,
) -> None:  # fmt: skip
    page = address.format(agent=program_a.agent.pk)
    row_id = admin.get(page).context["row_id"]
    first = admin.post(page, {**entries, ROW_ID: str(row_id)})
    assert first.status_code == status, first.context["errors"]
    with tenant_scope(program_a.tenant.id):
        assert model._default_manager.filter(pk=row_id).exists()
    second = admin.post(page, {**entries, ROW_ID: str(row_id)})
    assert "This form was sent twice" in second.text
    assert ("roll the key" in second.text) is (model is ApiKey)
    assert next(text for text in entries.values() if len(text) > 4) in second.text
    assert made(program_a, model) == 1
    another = second.context["row_id"]
    assert another != row_id
    assert admin.post(page, {**entries, ROW_ID: str(another)}).status_code == status
    assert made(program_a, model) == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("model", "address", "entries", "status"), FORMS)
def test_two_concurrent_posts_of_a_form_create_one_row(
    program_a: Program, browser: Browser,
    model: type[Model], address: str, entries: dict[str, Any], status: int,
) -> None:  # fmt: skip
    clients = [browser(program_a.tenant), browser(program_a.tenant)]
    page, row_id = address.format(agent=program_a.agent.pk), str(uuid4())

    def send(client: Client) -> bool:
        try:
            return "This form was sent twice" in client.post(page, {**entries, ROW_ID: row_id}).text
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(send, clients)) == [False, True]
    assert made(program_a, model) == 1
    with tenant_scope(program_a.tenant.id):
        assert AccessEvent.objects.filter(action="create", subject_id=row_id).count() == 1


def test_an_answer_of_a_person_is_sent_once(pending_a: Program, admin: Client) -> None:
    with tenant_scope(pending_a.tenant.id):
        escalation = Escalation.objects.open().to_people().get()
    page = f"/admin/escalations/{escalation.pk}/"
    row_id = str(admin.get(page).context["row_id"])
    for content, count in (("On my way.", 1), ("On my way.", 1), ("It was late.", 2)):
        sent = admin.post(f"{page}answer/", {"content": content, ROW_ID: row_id})
        assert sent.status_code == 302
        with tenant_scope(pending_a.tenant.id):
            answers = Message.objects.filter(content__in=["On my way.", "It was late."])
            assert answers.count() == count
