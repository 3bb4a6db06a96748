"""Records of all changes in a tenant's admin: user, values before and after, and exceptions."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.test import Client

from konstruct.api.auth.keys import issue_key
from konstruct.api.models import ApiKey
from konstruct.orchestrator.models import Agent
from memory.models import MemoryEntry
from tenants.admin.recorded_admin import time_text
from tenants.admin.sites import tenant_site
from tenants.audit.models import AccessEvent, RetentionRule
from tenants.context import tenant_scope
from tests.konstruct.admin.agents.test_agents import AGENT_FORM
from tests.konstruct.conftest import Browser, Program, user_of

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def populated_a(module_populated: Program) -> Program:
    return module_populated


AGENTS = "/admin/orchestrator/agent/"
FACTS = "/admin/memory/memoryentry/"
KEYS = "/admin/api/apikey/"
RULES = "/admin/audit/retentionrule/"
PEOPLE = "/admin/auth/user/"
ROLES = "/admin/auth/group/"
READS = ("list", "search", "view")


@pytest.fixture
def client(populated_a: Program, browser: Browser) -> Client:
    return browser(populated_a.tenant)


def events(program: Program, **wanted: Any) -> list[AccessEvent]:
    with tenant_scope(program.tenant.id):
        return list(AccessEvent.objects.filter(**wanted).order_by("id"))


def changes(program: Program) -> list[AccessEvent]:
    return [event for event in events(program) if event.action not in READS]


def test_a_fact_is_recorded_with_the_person_it_is_about(
    populated_a: Program, client: Client
) -> None:
    new = {"content": "Eve is tall.", "metadata": "{}", "user_id": "eve"}
    client.post(f"{FACTS}add/", new)
    with tenant_scope(populated_a.tenant.id):
        fact = MemoryEntry.objects.get(content="Eve is tall.")
    client.post(f"{FACTS}{fact.pk}/change/", {"content": "Eve is small.", "metadata": "{}"})
    client.post(f"/admin/facts/{fact.pk}/decide/", {"decision": "end"})
    client.post(f"{FACTS}{fact.pk}/delete/", {"post": "yes"})
    created, edited, ended, deleted = changes(populated_a)
    assert [user_of(event) for event in (created, edited, ended, deleted)] == ["eve"] * 4
    assert created.detail["after"]["state"] == "active"
    assert edited.detail["withheld"] == ["asserter", "content", "content_digest"]
    assert "tall" not in str([event.detail for event in (created, edited, ended, deleted)])
    assert (ended.action, ended.detail["before"]["valid_to"]) == ("decide", None)
    assert (deleted.action, deleted.detail["before"]["state"]) == ("delete", "active")
    assert "after" not in deleted.detail


def test_a_key_is_recorded_without_its_secret(populated_a: Program, client: Client) -> None:
    made = client.post(
        f"{KEYS}add/", {"name": "billing", "scopes": ["read"], "user_id": "eve"}, follow=True
    )
    with tenant_scope(populated_a.tenant.id):
        key = ApiKey.objects.get(name="billing")
    client.post(KEYS, {"action": "revoke", "_selected_action": str(key.pk)})
    created, revoked = changes(populated_a)
    assert (created.action, created.subject, user_of(created)) == ("create", "API key", "eve")
    assert created.detail["after"]["scopes"] == ["read"]
    assert revoked.detail["before"] == {"revoked_at": None}
    assert revoked.detail["after"]["revoked_at"]
    secret = made.text.split("ks_")[1].split("_")[2][:64]
    for event in (created, revoked):
        assert key.secret_digest not in str(event.detail)
        assert secret not in str(event.detail)


def test_a_person_is_recorded_without_passwords(populated_a: Program, client: Client) -> None:
    client.post(f"{PEOPLE}add/", {"username": "zoe", "role": "auditor"})
    with tenant_scope(populated_a.tenant.id):
        zoe = User.objects.get(username="zoe")
        first_hash = zoe.password
    client.post(
        f"{PEOPLE}{zoe.pk}/change/", {"username": "zoe", "role": "curator", "is_active": "on"}
    )
    client.post(
        f"{PEOPLE}{zoe.pk}/password/",
        {
            "password1": "another horse battery",
            "password2": "another horse battery",
            "usable_password": "true",
            "set-password": "1",
        },
    )
    created, edited, renewed = changes(populated_a)
    assert created.detail["after"]["groups"] == ["auditor"]
    assert edited.detail["before"] == {"groups": ["auditor"]}
    assert edited.detail["after"] == {"groups": ["curator"]}
    assert renewed.detail == {"withheld": ["password"]}
    with tenant_scope(populated_a.tenant.id):
        zoe.refresh_from_db()
    for event in (created, edited, renewed):
        for hidden in (first_hash, zoe.password, "another horse"):
            assert hidden not in str(event.detail)


def test_change_without_a_record_is_rolled_back(
    populated_a: Program, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(*_: Any, **__: Any) -> None:
        raise DatabaseError("no room")

    client.raise_request_exception = False
    monkeypatch.setattr("konstruct.admin.access.record_access", is_full)
    assert client.post(f"{AGENTS}add/", AGENT_FORM).status_code == 500
    with tenant_scope(populated_a.tenant.id):
        fact = MemoryEntry.objects.as_of().get()
        assert not Agent.objects.filter(name="bob").exists()
    assert client.post(f"{FACTS}{fact.pk}/delete/", {"post": "yes"}).status_code == 500
    assert client.get(FACTS).status_code == 500
    with tenant_scope(populated_a.tenant.id):
        assert MemoryEntry.objects.filter(pk=fact.pk).exists()


def test_a_refused_page_is_recorded_as_refused_and_not_as_looked_at(
    populated_a: Program, browser: Browser
) -> None:
    client = browser(populated_a.tenant, "view_message")
    with tenant_scope(populated_a.tenant.id):
        fact = MemoryEntry.objects.as_of().get()
    refused = {
        FACTS: 403,
        f"{FACTS}{fact.pk}/change/": 403,
        f"{FACTS}{fact.pk}/delete/": 403,
        f"{FACTS}{fact.pk}/history/": 403,
        "/admin/people/person/?user=maria": 403,
        "/admin/no/such/page/": 404,
        f"/admin/conversations/{fact.pk}/": 404,
    }
    for address, status in refused.items():
        assert (address, client.get(address).status_code) == (address, status)
    assert client.post(f"{FACTS}{fact.pk}/delete/", {"post": "yes"}).status_code == 403
    recorded = events(populated_a)
    assert {event.action for event in recorded} == {"refuse"}
    assert [event.detail["status"] for event in recorded] == [*refused.values(), 403]
    person = recorded[4]
    assert person.detail["attempted"] == "GET admin/people/person/"
    assert user_of(person) == "maria"


def test_no_model_can_be_searched_past_its_pages(populated_a: Program, client: Client) -> None:
    address = "/admin/autocomplete/?app_label=memory&model_name=message&field_name=in_reply_to"
    assert client.get(f"{address}&term=sister").status_code == 404
    assert [event.action for event in events(populated_a)] == ["refuse"]


def test_every_model_of_the_site_is_recorded() -> None:
    from konstruct.admin.access import AuditedAdmin

    assert all(isinstance(page, AuditedAdmin) for page in tenant_site._registry.values())


def test_the_log_shows_before_and_after(populated_a: Program, client: Client) -> None:
    _, _ = issue_key(tenant_id=populated_a.tenant.id, name="x")
    client.post(f"{RULES}add/", {"agent_id": "", "days": "365"}, REMOTE_ADDR="198.51.100.7")
    with tenant_scope(populated_a.tenant.id):
        rule = RetentionRule.objects.get()
    client.post(f"{RULES}{rule.pk}/change/", {"agent_id": "", "days": "3"})
    (edited,) = events(populated_a, action="edit")
    listed = client.get("/admin/audit/accessevent/").text
    assert "days: 365 → 3" in listed
    assert f"effective_at: {time_text(rule.effective_at)} → " in listed
    assert "198.51.100.7" in listed
    assert f"{edited.created_at:%Y, %H:%M:%S} UTC" in listed
    page = client.get(f"/admin/audit/accessevent/{edited.pk}/change/").text
    assert re.search(r"days.*365.*days.*3\b", page, re.DOTALL)
    found = client.get("/admin/audit/accessevent/", {"q": "198.51.100.7"})
    assert [event.action for event in found.context["cl"].result_list] == ["create"]
