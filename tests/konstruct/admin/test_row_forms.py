"""Two people with the same form: the second save is refused, and names the lost changes."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from konstruct.orchestrator.models import Agent
from memory.facts import LongTermMemory
from memory.models import MemoryEntry
from tenants.admin.recorded_admin import VERSION
from tenants.context import tenant_scope
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
