"""Two people with the same form: the second save is refused once, and lists the lost changes."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connections
from django.test import Client

from konstruct.orchestrator.agents import update_agent
from konstruct.orchestrator.models import Agent
from memory.facts import LongTermMemory
from memory.models import MemoryEntry
from tenants.admin.row_forms import VERSION
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tenants.models import Domain, Tenant
from tests.konstruct.admin.agents.test_agents import AGENT_FORM
from tests.konstruct.conftest import Program

FORM = {**AGENT_FORM, "name": "ada", "recall_weights": "{}"}
_VERSION = re.compile(rf'name="{VERSION}" value="([^"]+)"')
_VERSION_OF_HOST = re.compile(rf'name="domains-0-{VERSION}" value="([^"]+)"')


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


def test_second_save_is_refused_once_and_keeps_the_input(
    program_a: Program, browser: Callable[..., Client]
) -> None:
    first, second = browser(program_a.tenant), browser(program_a.tenant)
    address = f"/admin/orchestrator/agent/{program_a.agent.pk}/change/"
    with tenant_scope(program_a.tenant.id):
        User.objects.filter(pk=first.session["_auth_user_id"]).update(username="eva")
    version = opened(second, address)
    assert first.post(address, {**FORM, "persona": "Kind.", VERSION: version}).status_code == 302

    refused = second.post(address, {**FORM, "identity": "Of second.", VERSION: version})
    assert refused.status_code == 200
    assert stored(program_a).persona == "Kind."
    (error,) = refused.context["adminform"].form.non_field_errors()
    assert re.match(r"eva changed this on .+ Persona\. ", error)
    assert "Identity" not in error
    assert "Stored now: “Kind.”" in refused.text
    assert "Of second." in refused.text

    confirmed = version_in(refused)
    assert confirmed != version
    saved = second.post(address, {**FORM, "identity": "Of second.", VERSION: confirmed})
    assert saved.status_code == 302
    agent = stored(program_a)
    assert (agent.persona, agent.identity) == ("", "Of second.")


def test_form_with_another_error_confirms_nothing(
    program_a: Program, browser: Callable[..., Client]
) -> None:
    client = browser(program_a.tenant)
    address = f"/admin/orchestrator/agent/{program_a.agent.pk}/change/"
    form = {**FORM, VERSION: opened(client, address)}
    wrong = client.post(address, {**form, "recall_top_k": "500"})
    assert version_in(wrong) == form[VERSION]
    with tenant_scope(program_a.tenant.id):
        update_agent(Agent.objects.get(pk=program_a.agent.pk), persona="By a program.")
    both = client.post(address, {**form, "recall_top_k": "500"})
    assert "is more than 100" in both.text
    assert "Stored now: “By a program.”" in both.text
    assert client.post(address, {**form, VERSION: version_in(both)}).status_code == 302


def test_equal_changes_are_no_conflict(program_a: Program, browser: Callable[..., Client]) -> None:
    client = browser(program_a.tenant)
    address = f"/admin/orchestrator/agent/{program_a.agent.pk}/change/"
    form = {**FORM, "persona": "Kind.", VERSION: opened(client, address)}
    for _ in range(2):
        assert client.post(address, form).status_code == 302


def test_a_fact_that_a_program_changed_names_it(
    populated_a: Program, browser: Callable[..., Client]
) -> None:
    client = browser(populated_a.tenant)
    with tenant_scope(populated_a.tenant.id):
        fact = MemoryEntry.objects.entries().get()
    address = f"/admin/memory/memoryentry/{fact.pk}/change/"
    form = {"content": "Likes coffee.", "metadata": "{}", VERSION: opened(client, address)}
    answer = populated_a.request(
        "PATCH",
        f"/api/v1/facts/{fact.pk}/",
        data=b'{"content": "Likes water."}',
        content_type="application/json",
    )
    assert answer.status_code == 200, answer.content
    refused = client.post(address, form)
    (error,) = refused.context["adminform"].form.non_field_errors()
    with tenant_scope(populated_a.tenant.id):
        by = AccessEvent.objects.filter(subject_id=str(fact.pk), action="edit").latest("pk").actor
        assert LongTermMemory().history(fact.pk, populated_a.tenant.id)[0].content == "Likes water."
    assert error.startswith(f"{by} changed this on ")
    assert "Stored now: “Likes water.”" in refused.text


def test_forms_of_members_roles_and_operators_refuse_stale_saves(
    tenant_a: Tenant, browser: Callable[..., Client], operator: Client
) -> None:
    client = browser(tenant_a)
    with tenant_scope(tenant_a.id):
        mia = User.objects.create_user("mia", is_staff=True)
        mia.groups.add(Group.objects.get(name="curator"))
        role = Group.objects.create(name="leads")
    member = f"/admin/auth/user/{mia.pk}/change/"
    form = {"username": "mia", "role": "curator", "is_active": "on"}
    version = opened(client, member)
    assert client.post(member, {**form, "role": "auditor", VERSION: version}).status_code == 302
    refused = client.post(member, {**form, "first_name": "Mia", VERSION: version})
    assert "Stored now: “auditor" in refused.text
    group = f"/admin/auth/group/{role.pk}/change/"
    version = opened(client, group)
    assert client.post(group, {"name": "heads", VERSION: version}).status_code == 302
    assert "Stored now: “heads”" in client.post(group, {"name": "leads", VERSION: version}).text
    tenant = f"/admin/tenants/tenant/{tenant_a.pk}/change/"
    none = {"domains-TOTAL_FORMS": "0", "domains-INITIAL_FORMS": "0"}
    version = opened(operator, tenant)
    for name, status in (("First", 302), ("Second", 200)):
        sent = operator.post(tenant, {**none, "name": name, VERSION: version})
        assert sent.status_code == status
    assert "olga changed this on" in sent.text


def test_a_host_name_that_another_operator_changed_is_kept(
    tenant_a: Tenant, operator: Client
) -> None:
    def form_of(page: Any, **fields: Any) -> dict[str, Any]:
        found = _VERSION_OF_HOST.search(page.text)
        assert found is not None
        row = {"id": host.pk, "tenant": tenant_a.pk, "domain": host.domain, VERSION: found[1]}
        count = {"domains-TOTAL_FORMS": "1", "domains-INITIAL_FORMS": "1"}
        inline = {f"domains-0-{name}": value for name, value in {**row, **fields}.items()}
        return {"name": tenant_a.name, **count, **inline}

    def hosts() -> list[str]:
        return list(Domain.objects.filter(tenant=tenant_a).values_list("domain", flat=True))

    address = f"/admin/tenants/tenant/{tenant_a.pk}/change/"
    host = Domain.objects.get(tenant=tenant_a)
    opened = operator.get(address)
    assert operator.post(address, form_of(opened, domain="first.example")).status_code == 302
    for change in ({"domain": "second.example"}, {"DELETE": "on"}, {}):
        refused = operator.post(address, form_of(opened, **change))
        assert refused.status_code == 200
        assert "olga changed this on" in refused.text
        assert "Stored now: “first.example”." in refused.text
    assert hosts() == ["first.example"]
    assert operator.post(address, form_of(refused, domain="second.example")).status_code == 302
    assert hosts() == ["second.example"]
    Domain.objects.filter(pk=host.pk).delete()
    late = operator.post(address, form_of(opened, domain="third.example"))
    assert "A host name was deleted after you had opened it. Open the page again." in late.text
    assert operator.post(address, form_of(opened, DELETE="on")).status_code == 302
    assert hosts() == []


@pytest.mark.django_db(transaction=True)
def test_second_of_two_concurrent_saves_is_refused(
    program_a: Program, browser: Callable[..., Client]
) -> None:
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
