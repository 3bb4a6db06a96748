"""Error pages: one layout, the right status, and no data of another tenant."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.konstruct.conftest import Program

BROWSER = {"Accept": "text/html,application/xhtml+xml"}


def opened(host: str, path: str = "/admin/", **options: Any) -> Any:
    return Client(headers={"Host": host, **BROWSER}, **options).get(path)


def is_branded(page: Any) -> bool:
    text = page.content.decode()
    has_main = "<main>" in text and text.count("<h1>") == 1
    return page["Content-Type"].startswith("text/html") and has_main and "error.css" in text


def test_refused_page_names_the_missing_permission_and_the_owners(
    tenant_a: Tenant, tenant_b: Tenant, browser: Callable[..., Client]
) -> None:
    with tenant_scope(tenant_a.id):
        User.objects.create_superuser("ruth")
        mia = User.objects.create_user("mia", is_staff=True)
        team = Group.objects.create(name="team leads")
        team.permissions.add(Permission.objects.get(codename="change_user"))
        mia.groups.add(team)
        User.objects.create_user("no-staff", is_superuser=True)
    with tenant_scope(tenant_b.id):
        User.objects.create_superuser("stranger")
    client = browser(tenant_a, "view_scope")
    for path, permission in (
        ("/admin/memory/message/", "memory.view_message"),
        ("/admin/search/", "audit.search_everyone"),
        ("/admin/orchestrator/agent/add/", "orchestrator.add_agent"),
    ):
        page = client.get(path)
        assert page.status_code == 403
        assert is_branded(page)
        assert permission in page.text
        assert "<bdi>mia</bdi>, <bdi>ruth</bdi>." in page.text
        assert "stranger" not in page.text
    assert "Can search the messages of all people" in client.get("/admin/search/").text


def test_refused_page_without_a_permission_names_none(
    tenant_a: Tenant, browser: Callable[..., Client]
) -> None:
    page = browser(tenant_a).get("/admin/memory/message/add/")
    assert page.status_code == 403
    assert is_branded(page)
    assert "This cannot be done here" in page.text


def test_operator_sees_how_to_get_a_permission(db: None, tenant_a: Tenant) -> None:
    User.objects.create_superuser("olga")
    with tenant_scope(tenant_a.id):
        User.objects.create_superuser("of-a-tenant")
    client = Client(headers={"Host": "localhost"})
    client.force_login(User.objects.create_user("otto", is_staff=True))
    page = client.get("/admin/tenants/tenant/")
    assert (page.status_code, is_branded(page)) == (403, True)
    assert "tenants.view_tenant" in page.text
    assert "<bdi>olga</bdi>" in page.text
    assert "of-a-tenant" not in page.text


def test_an_unknown_page_is_not_found(tenant_a: Tenant, browser: Callable[..., Client]) -> None:
    for page in (browser(tenant_a).get("/admin/nowhere/"), opened("localhost", "/nowhere/")):
        assert (page.status_code, is_branded(page)) == (404, True)


def test_a_form_without_its_token_has_expired(tenant_a: Tenant) -> None:
    client = Client(enforce_csrf_checks=True, headers={"Host": "tenant-a.localhost"})
    page = client.post("/admin/login/", {"username": "x", "password": "y"})
    assert (page.status_code, is_branded(page)) == (403, True)
    assert "The form has expired" in page.text


def test_a_suspended_and_an_unknown_host_have_pages(tenant_a: Tenant, tenant_b: Tenant) -> None:
    Tenant.objects.filter(pk=tenant_a.pk).update(state=Tenant.State.SUSPENDED)
    suspended = opened("tenant-a.localhost")
    assert (suspended.status_code, is_branded(suspended)) == (403, True)
    assert "This service is suspended" in suspended.text
    unknown = opened("no-tenant.localhost")
    assert (unknown.status_code, is_branded(unknown)) == (404, True)
    assert "No service has this address" in unknown.text
    for page in (suspended, unknown):
        assert "tenant-a" not in page.text
        assert "tenant-b" not in page.text
    plain = Client(headers={"Host": "no-tenant.localhost"}).get("/admin/")
    assert plain.content == b"No service has this address.\n"


def test_an_error_of_the_server_has_a_page(
    tenant_a: Tenant, browser: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("of the server")

    client = browser(tenant_a)
    client.raise_request_exception = False
    monkeypatch.setattr("konstruct.admin.memory.search.query_of", fail)
    page = client.get("/admin/search/")
    assert (page.status_code, is_branded(page)) == (500, True)
    assert "of the server" not in page.text


def test_programs_get_problems(program_a: Program) -> None:
    headers = {"Host": "no-tenant.localhost", **BROWSER}
    for answer in (
        program_a.get("/api/v1/nowhere/", headers=BROWSER),
        program_a.get("/api/v1/agents/", headers=headers),
    ):
        assert answer.status_code >= 400
        assert answer["Content-Type"] == "application/problem+json"
