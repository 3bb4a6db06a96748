"""Webhooks in a tenant's admin: the secret is shown once; deliveries are retried and repeated."""

import re
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from konstruct.channels import webhooks
from tenants.audit.models import AccessEvent, Action
from tenants.context import tenant_scope
from tenants.outbox.events import record_event
from tenants.outbox.models import NOTIFICATIONS, EventDelivery, EventType, Subscription
from tests.jobs import work
from tests.konstruct.conftest import Program
from tests.servers.llm import Answer, LLMServer

WEBHOOKS_PAGE = "/admin/outbox/subscription/"
DELIVERIES = "/admin/outbox/eventdelivery/"
SECRET = re.compile(r"whsec_[\w+/=]+")


def create(admin: Client, url: str = "https://hooks.example.com/in", **fields: Any) -> Any:
    form = {
        "target": "webhook",
        "url": url,
        "types": ["erasure.done"],
        "is_active": "on",
        "wait_minutes": "15",
        "review_threshold": "20",
        **fields,
    }
    return admin.post(f"{WEBHOOKS_PAGE}add/", form, follow=True)


def test_a_secret_is_shown_once_and_rotated(program_a: Program, admin: Client) -> None:
    first = SECRET.search(create(admin).content.decode())
    assert first is not None
    with tenant_scope(program_a.tenant.id):
        webhook = Subscription.objects.get()
    assert (webhook.url, webhook.types) == ("https://hooks.example.com/in", ["erasure.done"])
    for page in (WEBHOOKS_PAGE, f"{WEBHOOKS_PAGE}{webhook.pk}/change/"):
        text = admin.get(page).text
        assert webhook.url in text
        assert not SECRET.search(text)
    page = admin.post(WEBHOOKS_PAGE, {"action": "rotate", "_selected_action": [str(webhook.pk)]})
    second = SECRET.search(page.text)
    assert second is not None
    assert second[0] != first[0]
    assert "by the previous secret too" in page.text
    with tenant_scope(program_a.tenant.id):
        assert not any(SECRET.search(str(event.detail)) for event in AccessEvent.objects.all())


@pytest.mark.parametrize("url", ["http://hooks.example.com/", "https://127.0.0.1/", "hooks"])
def test_a_refused_url_is_an_error_of_the_form(program_a: Program, admin: Client, url: str) -> None:
    page = create(admin, url)
    assert page.status_code == 200
    assert "errorlist" in page.text or "must begin" in page.text or "is not a URL" in page.text
    with tenant_scope(program_a.tenant.id):
        assert not Subscription.objects.exists()


def test_webhooks_and_recipients_share_a_maximum(
    program_a: Program, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "MAX_WEBHOOKS", 1)
    create(admin)
    for fields in ({}, {"target": "mail", "addresses": "eva@example.com", "url": ""}):
        page = create(admin, **fields)
        assert "1 notifications and webhooks, the maximum. Remove one first." in page.text
        # The form keeps what was entered.
        assert fields.get("addresses", "https://hooks.example.com/in") in page.text
    with tenant_scope(program_a.tenant.id):
        assert Subscription.objects.count() == 1


def test_deliveries_are_listed_retried_and_sent_again(
    program_a: Program, admin: Client, settings: Any
) -> None:
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    with LLMServer() as receiver:
        create(admin, receiver.url)
        receiver.answers = [Answer("", 410)]
        with tenant_scope(program_a.tenant.id):
            record_event(EventType.ERASURE_DONE, UUID(int=1))
            delivery = EventDelivery.objects.get()
        work("notification")
        assert "answered 410" in admin.get(DELIVERIES).text
        admin.post(DELIVERIES, {"action": "retry", "_selected_action": [str(delivery.pk)]})
        work("notification")
        assert "delivered" in admin.get(DELIVERIES).text
        admin.post(DELIVERIES, {"action": "send_again", "_selected_action": [str(delivery.pk)]})
        work("notification")
        assert len(receiver.requests) == 3
    assert "An erasure is done" in admin.get("/admin/outbox/outboxevent/").text
    with tenant_scope(program_a.tenant.id):
        webhook = Subscription.objects.get()
        record_event(EventType.ERASURE_DONE, UUID(int=2))
    admin.post(f"{WEBHOOKS_PAGE}{webhook.pk}/delete/", {"post": "yes"})
    with tenant_scope(program_a.tenant.id):
        assert not EventDelivery.objects.exists()
        assert not NOTIFICATIONS.jobs().exists()
        deleted = AccessEvent.objects.get(action=Action.DELETE)
    assert (deleted.subject, deleted.subject_id) == ("subscription", str(webhook.pk))
    assert deleted.detail["before"]["is_active"] is True
