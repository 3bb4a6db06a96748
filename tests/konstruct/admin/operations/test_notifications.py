"""Notifications in the admin: recipients are added, tried and retried; Slack accounts are added."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from konstruct.channels.models import SlackMember
from konstruct.channels.slack.installations import connect
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tenants.outbox.events import record_event
from tenants.outbox.models import NOTIFICATIONS, EventDelivery, EventType, Subscription
from tests.konstruct.conftest import Browser, Program
from tests.servers.mail import MailServer

RECIPIENTS = "/admin/outbox/subscription/"
SENT = "/admin/outbox/eventdelivery/"
ACCOUNTS = "/admin/channels/slackmember/"
FORM = {
    "target": "mail",
    "url": "",
    "description": "",
    "addresses": "eva@example.com, olga@example.com",
    "workspace": "",
    "slack_channel": "",
    "types": ["escalation.opened", "erasure.done"],
    "wait_minutes": "15",
    "review_threshold": "20",
    "is_active": "on",
}
SLACK = {"target": "slack", "addresses": "", "workspace": "T1", "slack_channel": "C024BE7LR"}


def install(program: Program) -> None:
    """Connect the workspace T1 to a tenant."""
    connect(
        tenant_id=program.tenant.id,
        agent_id=program.agent.id,
        workspace="T1",
        bot_user_id="UBOT",
        token="xoxb-1",
        by="eva",
    )


def recipients(program: Program) -> list[Subscription]:
    with tenant_scope(program.tenant.id):
        return list(Subscription.objects.order_by("created_at"))


def test_changes_and_tests_of_a_recipient_are_recorded(
    program_a: Program, program_b: Program, admin: Client, mail: MailServer
) -> None:
    admin.post(f"{RECIPIENTS}add/", FORM)
    (row,) = recipients(program_a)
    assert recipients(program_b) == []
    page = admin.get(RECIPIENTS).text
    assert "eva@example.com" in page
    assert "A user waits for a person; An erasure is done" in page
    selected = {"action": "send_test", "_selected_action": [str(row.pk)]}
    page = admin.post(RECIPIENTS, selected, follow=True).text
    assert "A test was sent to eva@example.com, olga@example.com." in page
    assert mail.recipients == [["eva@example.com"], ["olga@example.com"]]
    changed = {**FORM, "wait_minutes": "30", "target": "webhook"}
    admin.post(f"{RECIPIENTS}{row.pk}/change/", changed)
    (row,) = recipients(program_a)
    assert (row.wait_minutes, row.target) == (30, "mail")  # the destination stays
    admin.post(f"{RECIPIENTS}{row.pk}/delete/", {"post": "yes"})
    assert recipients(program_a) == []
    with tenant_scope(program_a.tenant.id):
        logged = AccessEvent.objects.filter(subject="subscription").order_by("id")
        done = [event.action for event in logged if event.action not in ("list", "view")]
    assert done == ["create", "send", "edit", "delete"]


def test_failed_test_of_a_recipient_shows_the_reason(
    program_a: Program, admin: Client, mail: MailServer
) -> None:
    admin.post(f"{RECIPIENTS}add/", FORM)
    mail.answers = ["550 no such user"]
    selected = {"action": "send_test", "_selected_action": [str(recipients(program_a)[0].pk)]}
    page = admin.post(RECIPIENTS, selected, follow=True).text
    assert (
        "eva@example.com, olga@example.com: The mail server refused the mail with the code 550."
        in page
    )


def test_without_mail_the_form_warns(program_a: Program, admin: Client, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST = ""
    page = admin.post(f"{RECIPIENTS}add/", FORM, follow=True).text
    assert "This deployment cannot send mail yet: ask its operator." in page


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"target": "webhook"}, "Give the URL."),
        ({"target": "pigeon"}, "pigeon is not one of the available choices"),
        ({"addresses": ""}, "Give the address."),
        ({"addresses": "eva"}, "Enter a valid email address."),
        ({"addresses": "eva@example.com\r\nBcc: all@example.com"}, "Enter a valid email address."),
        ({"addresses": ",".join(f"a{n}@example.com" for n in range(21))}, "no more than 20"),
        ({**SLACK, "workspace": ""}, "Choose a connected workspace."),
        ({**SLACK, "workspace": "T9"}, "T9 is not one of the available choices"),
        ({**SLACK, "slack_channel": "#general"}, "is not the id of a Slack channel"),
        ({"types": []}, "Choose the events."),
        ({"types": ["all"]}, "all is not one of the available choices"),
        ({"wait_minutes": "0"}, "wait_minutes"),
        ({"wait_minutes": "99999999"}, "wait_minutes"),
        ({"review_threshold": "0"}, "review_threshold"),
    ],
    ids=str,
)
def test_invalid_recipient_is_refused(
    program_a: Program, admin: Client, changed: dict[str, Any], error: str
) -> None:
    install(program_a)
    response = admin.post(f"{RECIPIENTS}add/", {**FORM, **changed})
    assert response.status_code == 200
    assert error in response.text
    assert recipients(program_a) == []


def test_a_slack_channel_of_a_connected_workspace(program_a: Program, admin: Client) -> None:
    install(program_a)
    admin.post(f"{RECIPIENTS}add/", {**FORM, **SLACK})
    (row,) = recipients(program_a)
    assert (row.workspace, row.slack_channel, row.addresses) == ("T1", "C024BE7LR", [])


def test_an_auditor_sees_recipients_and_changes_none(
    program_a: Program, browser: Browser, mail: MailServer
) -> None:
    browser(program_a.tenant).post(f"{RECIPIENTS}add/", FORM)
    (row,) = recipients(program_a)
    auditor = browser(program_a.tenant, "view_subscription")
    assert "eva@example.com" in auditor.get(RECIPIENTS).text
    assert auditor.get(f"{RECIPIENTS}add/").status_code == 403
    assert auditor.post(f"{RECIPIENTS}{row.pk}/change/", FORM).status_code == 403
    selected = {"action": "send_test", "_selected_action": [str(row.pk)]}
    auditor.post(RECIPIENTS, selected)
    assert mail.mails == []


def test_another_tenants_recipient_is_not_found(
    program_a: Program, program_b: Program, browser: Browser, mail: MailServer
) -> None:
    browser(program_a.tenant).post(f"{RECIPIENTS}add/", FORM)
    (row,) = recipients(program_a)
    other = browser(program_b.tenant)
    assert "eva@example.com" not in other.get(RECIPIENTS).text
    assert other.get(f"{RECIPIENTS}{row.pk}/change/").status_code == 404
    other.post(RECIPIENTS, {"action": "send_test", "_selected_action": [str(row.pk)]})
    other.post(f"{RECIPIENTS}{row.pk}/delete/", {"post": "yes"})
    assert mail.mails == []
    assert recipients(program_a) == [row]


def test_notifications_are_listed_and_failed_ones_retried(
    program_a: Program, admin: Client
) -> None:
    admin.post(f"{RECIPIENTS}add/", FORM)
    (row,) = recipients(program_a)
    with tenant_scope(program_a.tenant.id):
        record_event(EventType.ESCALATION_OPENED, row.pk, user_id="maria")
        sent = EventDelivery.objects.get()
        NOTIFICATIONS.give_up(sent.pk, code="refused", reason="The server refused it.")
    page = admin.get(f"{SENT}?state=failed").text
    for text in ("A user waits for a person", "maria", "The server refused it."):
        assert text in page
    admin.post(SENT, {"action": "retry", "_selected_action": [str(sent.pk)]})
    with tenant_scope(program_a.tenant.id):
        assert not NOTIFICATIONS.jobs().failed().exists()
        assert sent.subscription_id == row.pk


def test_slack_accounts_are_added_by_id_and_of_superusers_by_superusers(
    program_a: Program, browser: Browser
) -> None:
    install(program_a)
    client = browser(program_a.tenant)
    with tenant_scope(program_a.tenant.id):
        installation = str(program_a.agent.slack_installations.get().pk)
        eva, root = User.objects.create_user("eva"), User.objects.create_superuser("root")
    form = {"installation": installation, "slack_id": "@eva", "member": str(eva.pk)}
    assert "is not the id of a Slack user" in client.post(f"{ACCOUNTS}add/", form).text
    form["slack_id"] = "U024BE7LH"
    client.post(f"{ACCOUNTS}add/", form)
    assert "already exists" in client.post(f"{ACCOUNTS}add/", form).text
    of_root = {**form, "slack_id": "U024BE7LK", "member": str(root.pk)}
    admin = browser(program_a.tenant, "add_slackmember", "view_slackmember")
    assert "not one of the available choices" in admin.post(f"{ACCOUNTS}add/", of_root).text
    client.post(f"{ACCOUNTS}add/", of_root)
    with tenant_scope(program_a.tenant.id):
        rows = SlackMember.objects.values_list("slack_id", "member__username")
        assert list(rows) == [("U024BE7LH", "eva"), ("U024BE7LK", "root")]
