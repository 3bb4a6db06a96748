"""States of the pages of operators, team, keys, retention and receipts that test_every_page.py
does not reach: links that are shown once, a tenant that is to be deleted, erasures that run.
"""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.core.management import call_command
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from playwright.sync_api import Page, expect

from konstruct.api.models import ApiKey
from konstruct.orchestrator.identities import erasure_requests
from konstruct.orchestrator.messages import Thread
from memory.conversations.transcript import record_message
from memory.models import Message
from tenants.admin.sites import first_admin_token
from tenants.audit.access_log import Actor
from tenants.audit.models import ActorKind, ErasureRequest, RetentionRule
from tenants.context import tenant_scope
from tenants.models import Job, Tenant
from tenants.schemas import provisioning
from tests import database
from tests.browser.conftest import PASSWORD, Aurora, BrowserUser, Visit
from tests.browser.test_pages import look, look_at

pytestmark = pytest.mark.long

EVA = Actor(ActorKind.PERSON, "1", "eva")


@pytest.fixture(scope="module")
def states(demo_tenant: Aurora, django_db_blocker: Any) -> dict[str, str]:
    """Pages of a tenant's admin with a change that waits and erasures, and of a leaving tenant."""
    with django_db_blocker.unblock():
        return {**_states_of_tenant(demo_tenant), "operators-leaving": _leaving_tenant()}


def _states_of_tenant(aurora: Aurora) -> dict[str, str]:
    with tenant_scope(aurora.tenant.id):
        rule = RetentionRule.objects.get(agent_id=aurora.agent.pk)
        message = Message.objects.filter(user_id="tom", role="user").earliest("number")
        of_message = erasure_requests.request_message_erasure(
            **Thread.of(message).as_filter, message_id=message.pk, by=EVA, reason="A card number."
        )
        row = {"user_id": "nia", "thread_id": "nia", "channel": "import", "role": "user"}
        record_message(
            tenant_id=aurora.tenant.id, agent_id=aurora.agent.pk, content="Forget me.", **row
        )
        done = erasure_requests.request_erasure("nia", by=EVA, reason="She asked for it by mail.")
    with database.as_owner():
        call_command("owner_worker", once=True, verbosity=0)
    with database.as_owner(), tenant_scope(aurora.tenant.id):
        running = erasure_requests.request_erasure("ola", by=EVA)
        ErasureRequest.objects.filter(pk=running.pk).update(
            progress={"step": "removes messages", "messages": {"removed": 300, "of": 910}}
        )
        Job.objects.create(kind="reply", key=uuid4(), due_at=timezone.now() - timedelta(hours=3))
        Job.objects.create(kind="reply", key=uuid4(), failed_at=timezone.now())
    return {
        "retention-waits": f"/admin/audit/retentionrule/{rule.pk}/change/",
        "receipt": f"/admin/audit/erasurerequest/{done.pk}/change/",
        "receipt-running": f"/admin/audit/erasurerequest/{running.pk}/change/",
        "erasure-of-message": f"/admin/audit/messageerasure/{of_message.pk}/change/",
    }


def _leaving_tenant() -> str:
    with database.as_owner():
        leaving = provisioning.create_tenant(slug="leaving", name="Leaving Ltd")
    provisioning.request_deletion(leaving)
    return f"/admin/tenants/tenant/{leaving.pk}/change/"


def fill(page: Page, **fields: str) -> None:
    """Type into fields by their labels."""
    for name, text in fields.items():
        page.locator(f"label[for=id_{name}]").click()
        page.keyboard.press("Control+a")
        page.keyboard.type(text)


def press(page: Page, name: str) -> Page:
    """Press a button of the page. Return the next page."""
    page.get_by_role("button", name=name, exact=True).click()
    page.wait_for_load_state()
    return page


def test_pages_of_operators_are_accessible_in_each_state(
    tenant_a: Tenant, states: dict[str, str], visit: Visit
) -> None:
    operator = visit("localhost")
    found = look(operator, "operators-login", "/admin/login/")
    found += look(operator, "operators-reset", "/admin/password-reset/")
    operator.log_in("olga")
    for name, path in (("operators-home", "/admin/"), *states.items()):
        if name.startswith("operators"):
            found += look(operator, name, path)
    page = operator.open(f"/admin/tenants/{tenant_a.id}/invite/?email=ada@example.com")
    found += look_at(press(page, "Show a link to copy"), "operators-link")
    assert found == []


def test_pages_of_a_team_are_accessible_in_each_state(
    demo_tenant: Aurora, states: dict[str, str], admin: BrowserUser
) -> None:
    with tenant_scope(demo_tenant.tenant.id):
        invited, key = User.objects.create(username="eva"), ApiKey.objects.get(name="website")
    found = []
    for name, path in states.items():
        if not name.startswith("operators"):
            found += look(admin, name, path)
    page = admin.open(f"/admin/team/{invited.pk}/invite/")
    found += look_at(press(page, "Show a link to copy"), "team-link")
    page = admin.open(f"/admin/api-keys/{key.pk}/roll/")
    found += look_at(press(page, "Roll the key"), "key-shown")
    assert found == []


def test_pages_before_a_login_are_accessible(
    demo_tenant: Aurora, tenant_a: Tenant, visit: Visit
) -> None:
    stranger = visit("tenant-a.localhost")
    token = first_admin_token(tenant_a, "ada@example.com")
    found = look(stranger, "first-admin", f"/admin/first-admin/{token}/")
    found += look(stranger, "first-admin-used", f"/admin/first-admin/x{token}/")
    found += look(stranger, "reset", "/admin/password-reset/")
    page = stranger.page
    page.get_by_label("Mail address").fill("ada@example.com")
    found += look_at(press(page, "Send a link"), "reset-sent")
    page = stranger.open(f"/admin/first-admin/{token}/")
    fill(page, username="ada", password1="short", password2="shorter")
    found += look_at(press(page, "Save"), "first-admin-wrong")
    fill(page, password1=PASSWORD, password2=PASSWORD)
    press(page, "Save")
    stranger.log_in("ada")
    found += look(stranger, "empty", "/admin/")
    with tenant_scope(demo_tenant.tenant.id):
        user = User.objects.create(username="invited")
        token = default_token_generator.make_token(user)
    path = f"{urlsafe_base64_encode(force_bytes(user.pk))}/{token}"
    found += look(visit(demo_tenant.host), "set-password", f"/admin/password/{path}/")
    assert found == []


def test_what_is_shown_once_is_copied(demo_tenant: Aurora, tenant_a: Tenant, visit: Visit) -> None:
    clipboard = ["clipboard-read", "clipboard-write"]
    operator = visit("localhost", permissions=clipboard)
    operator.log_in("olga")
    operator.open(f"/admin/tenants/{tenant_a.id}/invite/")
    assert "/admin/first-admin/" in copied(press(operator.page, "Show a link to copy"))
    admin = visit(demo_tenant.host, permissions=clipboard)
    admin.log_in("admin")
    page = admin.open("/admin/api/apikey/add/")
    expect(page.get_by_role("button", name="Save and add another")).to_have_count(0)
    fill(page, name="a program")
    assert copied(press(page, "Save")).startswith("ks_")


def copied(page: Page) -> str:
    """Press the copy button. Return the clipboard."""
    text = page.locator("pre").inner_text()
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == text
    return text
