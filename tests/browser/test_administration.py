"""States of the pages of operators, team, keys, retention and receipts that test_every_page.py
does not reach: links that are shown once, a tenant that is to be deleted, erasures that run.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.auth.tokens import default_token_generator
from django.core.management import call_command
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from playwright.sync_api import Page, expect

from konstruct.api.models import ApiKey
from konstruct.orchestrator import retention_rules
from konstruct.orchestrator.identities.erasure_requests import (
    request_erasure,
    request_message_erasure,
)
from konstruct.orchestrator.messages import Thread
from memory.conversations.transcript import record_message
from memory.models import Message
from tenants.admin.passwords import first_admin_token
from tenants.audit.access_log import Actor, ActorKind
from tenants.audit.models import ErasureRequest, MessageErasure, RetentionRule
from tenants.context import tenant_scope
from tenants.models import Domain, Job, Tenant
from tenants.schemas import provisioning
from tests import database
from tests.browser.conftest import PASSWORD, Aurora, Visit
from tests.browser.test_pages import look, look_at

pytestmark = pytest.mark.long

EVA = Actor(ActorKind.PERSON, "1", "eva")
TENANTS = "/admin/tenants/tenant/"


@dataclass(frozen=True)
class Administered:
    """Ids and links of the pages."""

    aurora: Aurora
    invited: User
    rule: RetentionRule
    key: ApiKey
    running: ErasureRequest
    done: ErasureRequest
    of_message: MessageErasure
    leaving: Tenant


@pytest.fixture(scope="module")
def administered(demo_tenant: Aurora, django_db_blocker: Any) -> Administered:
    """Aurora with a team, a pending retention change and erasures; and a tenant to be deleted."""
    with django_db_blocker.unblock():
        return _administered(demo_tenant)


def _administered(demo_tenant: Aurora) -> Administered:
    tenant = demo_tenant.tenant
    with tenant_scope(tenant.id):
        invited = User.objects.create(username="eva", email="eva@example.com", is_staff=True)
        invited.set_unusable_password()
        invited.save()
        invited.groups.set(Group.objects.filter(name="auditor"))
        rule = RetentionRule(days=90)
        retention_rules.set_days(rule, 90)
        RetentionRule.objects.filter(pk=rule.pk).update(days=365, next_days=14)
        message = Message.objects.filter(user_id="tom", role="user").first()
        assert message is not None
        of_message = request_message_erasure(
            **Thread.of(message).as_filter, message_id=message.pk, by=EVA, reason="A card number."
        )
        # Of persons that other tests do not use.
        for person in ("nia", "ola"):
            record_message(
                tenant_id=tenant.id,
                agent_id=demo_tenant.agent.pk,
                user_id=person,
                thread_id=person,
                channel="import",
                role="user",
                content="Please forget me.",
            )
        done = request_erasure(
            user_id="nia", agent_id=None, by=EVA, reason="She asked for it by mail."
        )
    with database.as_owner():
        call_command("owner_worker", once=True, verbosity=0)
    with database.as_owner(), tenant_scope(tenant.id):
        running = request_erasure(user_id="ola", agent_id=None, by=EVA, reason="")
        ErasureRequest.objects.filter(pk=running.pk).update(
            progress={"step": "removes messages", "messages": {"removed": 300, "of": 910}}
        )
    with tenant_scope(tenant.id):
        Job.objects.create(kind="reply", key=uuid4(), due_at=timezone.now() - timedelta(hours=3))
        Job.objects.create(kind="reply", key=uuid4(), failed_at=timezone.now())
        found = Administered(
            demo_tenant,
            invited,
            RetentionRule.objects.get(pk=rule.pk),
            ApiKey.objects.get(name="website"),
            ErasureRequest.objects.get(pk=running.pk),
            ErasureRequest.objects.get(pk=done.pk),
            MessageErasure.objects.get(pk=of_message.pk),
            Tenant(slug="leaving", name="Leaving Ltd", id=(pk := uuid4()), server="default",
                   schema_name=f"t_{pk.hex}", state="active",
                   migrated_to=tenant.migrated_to),
        )  # fmt: skip
    Tenant.objects.bulk_create([found.leaving])
    Domain.objects.create(tenant=found.leaving, domain="leaving.localhost")
    provisioning.request_deletion(found.leaving)
    return found


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
    administered: Administered, visit: Visit
) -> None:
    tenant = administered.aurora.tenant
    pages = {
        "operators-home": "/admin/",
        "operators-tenants": TENANTS,
        "operators-leaving": f"{TENANTS}{administered.leaving.id}/change/",
    }
    operator = visit("localhost")
    found = look(operator, "operators-login", "/admin/login/")
    found += look(operator, "operators-reset", "/admin/password-reset/")
    operator.log_in("olga")
    for name, path in pages.items():
        found += look(operator, name, path)
    page = operator.open(f"/admin/tenants/{tenant.id}/invite/?email=ada@example.com")
    found += look_at(press(page, "Show a link to copy"), "operators-link")
    assert found == [], found


def test_pages_of_a_team_are_accessible_in_each_state(
    administered: Administered, visit: Visit
) -> None:
    pages = {
        "team-person": f"/admin/auth/user/{administered.invited.pk}/change/",
        "team-invite": f"/admin/team/{administered.invited.pk}/invite/",
        "team-password": f"/admin/auth/user/{administered.invited.pk}/password/",
        "retention": "/admin/audit/retentionrule/",
        "retention-waits": f"/admin/audit/retentionrule/{administered.rule.pk}/change/",
        "erasure": f"/admin/audit/erasurerequest/{administered.done.pk}/change/",
        "receipt": f"/admin/audit/erasurerequest/{administered.done.pk}/change/",
        "receipt-running": f"/admin/audit/erasurerequest/{administered.running.pk}/change/",
        "erasure-of-message": f"/admin/audit/messageerasure/{administered.of_message.pk}/change/",
    }
    admin = visit(administered.aurora.host)
    admin.log_in("admin")
    found = []
    for name, path in pages.items():
        found += look(admin, name, path)
    page = admin.open(f"/admin/team/{administered.invited.pk}/invite/")
    found += look_at(press(page, "Show a link to copy"), "team-link")
    page = admin.open(f"/admin/api-keys/{administered.key.pk}/roll/")
    found += look_at(press(page, "Roll the key"), "key-shown")
    assert found == [], found


def test_pages_before_a_login_are_accessible(
    administered: Administered, tenant_a: Tenant, visit: Visit
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
    found += look(stranger, "first-steps", "/admin/")
    user = administered.invited
    with tenant_scope(administered.aurora.tenant.id):
        token = default_token_generator.make_token(user)
    path = f"{urlsafe_base64_encode(force_bytes(user.pk))}/{token}"
    found += look(visit(administered.aurora.host), "set-password", f"/admin/password/{path}/")
    assert found == [], found


def test_what_is_shown_once_is_copied(administered: Administered, visit: Visit) -> None:
    clipboard = ["clipboard-read", "clipboard-write"]
    operator = visit("localhost", permissions=clipboard)
    operator.log_in("olga")
    operator.open(f"/admin/tenants/{administered.aurora.tenant.id}/invite/")
    assert "/admin/first-admin/" in copied(press(operator.page, "Show a link to copy"))
    admin = visit(administered.aurora.host, permissions=clipboard)
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
