"""Error pages: one layout, the right status, and no data of another tenant."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from memory.facts import LongTermMemory
from memory.models import MemoryEntry
from tenants.models import Tenant
from tests.konstruct.conftest import Browser, Program

BROWSER = {"Accept": "text/html,application/xhtml+xml"}


def opened(host: str, path: str = "/admin/", **options: Any) -> Any:
    return Client(headers={"Host": host, **BROWSER}, **options).get(path)


def is_branded(page: Any) -> bool:
    text = page.content.decode()
    has_main = "<main>" in text and text.count("<h1>") == 1
    return page["Content-Type"].startswith("text/html") and has_main and "error.css" in text


def test_a_refused_page_names_the_missing_permission(tenant_a: Tenant, browser: Browser) -> None:
    client = browser(tenant_a, "view_scope")
    page, rows = client.get("/admin/search/"), client.get("/admin/memory/message/")
    for refused in (page, rows, browser(tenant_a).get("/admin/memory/message/add/")):
        assert (refused.status_code, is_branded(refused)) == (403, True)
    assert "audit.search_everyone" in page.text


def test_an_unknown_page_is_not_found(tenant_a: Tenant, browser: Browser) -> None:
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
    tenant_a: Tenant, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("of the server")

    client = browser(tenant_a)
    client.raise_request_exception = False
    monkeypatch.setattr("konstruct.admin.conversations.query_of", fail)
    page = client.get("/admin/search/")
    assert (page.status_code, is_branded(page)) == (500, True)
    assert "of the server" not in page.text


FACTS = "/admin/memory/memoryentry/"


def know(program: Program, *contents: str) -> list[UUID]:
    return [
        LongTermMemory().store(
            MemoryEntry(tenant_id=program.tenant.id, user_id="maria", content=content)
        )
        for content in contents
    ]


def test_a_missing_row_has_a_page_with_a_way_to_the_receipts(
    program_a: Program, browser: Browser, admin: Client, operator: Client
) -> None:
    missing = uuid4()
    message = f"/admin/conversations/{missing}/"
    reader = browser(program_a.tenant, "view_message")
    for answer in (
        admin.get(message),
        admin.get(f"{FACTS}{missing}/change/"),
        admin.post(f"{FACTS}{missing}/delete/", {"post": "yes"}),
    ):
        assert answer.status_code == 404
        assert "/admin/audit/erasurerequest/" in answer.text
        assert "/admin/audit/messageerasure/" in answer.text
        assert "data-keeps-entries" in answer.text
    for answer in (reader.get(message), operator.get(f"/admin/tenants/tenant/{missing}/change/")):
        assert answer.status_code == 404
        assert "/admin/audit/erasurerequest/" not in answer.text
    assert reader.get(f"{FACTS}{missing}/change/").status_code == 403
