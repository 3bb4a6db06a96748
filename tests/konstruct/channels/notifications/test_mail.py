"""Notifications by mail: their content and time, and a mail server that is down."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import ProgrammingError
from django.utils import timezone

from konstruct.channels.notifications import send_open, send_test
from konstruct.channels.webhooks import send
from konstruct.orchestrator.handoff.escalations import write_key
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import Agent, Escalation
from memory.models import Message
from tenants import transaction
from tenants.context import tenant_scope
from tenants.models import Job
from tenants.outbox.events import record_event
from tenants.outbox.models import NOTIFICATIONS, EventDelivery, EventType
from tests.konstruct.channels.notifications.conftest import ask, pass_time, recipient, work
from tests.konstruct.conftest import Program
from tests.servers.mail import MailServer


def escalate_long_ago(program: Program) -> Escalation:
    """Open an escalation an hour ago."""
    ask(program, "Hello", thread_id="old")
    thread = Thread(program.agent.id, "maria", "old")
    with transaction.atomic():
        write_key(thread)
        escalation = Escalation.objects.create(
            **thread.as_filter,
            channel="rest",
            message_id=Message.objects.get(thread_id="old", role="user").pk,
            opened_by="person",
            reason="",
            opened_at=timezone.now() - timedelta(hours=1),
        )
        record_event(EventType.ESCALATION_WAITING, escalation.pk, about=thread)
    return escalation


def text_of(mail: Any) -> str:
    return str(mail.get_content())


def test_no_mail_is_sent_in_a_transaction(team: Program, mail: MailServer) -> None:
    receiver = recipient()
    with pytest.raises(ProgrammingError, match="end it before you wait"), transaction.atomic():
        send_test(receiver)
    assert mail.mails == []


def test_escalation_mail_has_a_link_and_no_message_text(team: Program, mail: MailServer) -> None:
    recipient(types=["escalation.opened"])
    ask(team)
    work()
    (sent,) = mail.mails
    assert mail.recipients == [["eva@example.com"]]
    escalation = Escalation.objects.get()
    assert f"http://tenant-a.localhost:8000/admin/escalations/{escalation.pk}/" in text_of(sent)
    assert sent["Subject"].startswith("[Tenant-A] A user of ada waits for a person, since ")
    assert (sent["Auto-Submitted"], sent["From"]) == (
        "auto-generated", "Konstruct <no-reply@konstruct.example>",
    )  # fmt: skip
    assert "Bello" not in sent.as_string()
    assert "maria" not in sent.as_string()
    work()
    assert len(mail.mails) == 1
    assert not NOTIFICATIONS.jobs().exists()


def test_a_notification_is_in_the_language_of_the_setting(
    team: Program, mail: MailServer, settings: Any
) -> None:
    settings.NOTIFICATION_LANGUAGE = "de"
    recipient()
    ask(team)
    work()
    (sent,) = mail.mails
    assert sent["Subject"].startswith("[Tenant-A] Ein Benutzer von ada wartet auf eine Person")
    assert "Empfänger der Benachrichtigungen:" in text_of(sent)


def test_question_is_in_the_mail_if_the_recipient_wants_it(team: Program, mail: MailServer) -> None:
    recipient(includes_content=True)
    ask(team)
    work()
    assert "> I want to talk to a human about <!channel> my dog Bello" in text_of(mail.mails[0])


def test_without_recipients_there_is_no_job(team: Program) -> None:
    ask(team)
    assert Escalation.objects.count() == 1
    assert not Job.objects.filter(kind="notification").exists()


def test_new_recipient_is_notified_of_open_escalations(team: Program, mail: MailServer) -> None:
    ask(team)
    recipient()
    work()
    assert len(mail.mails) == 1


def test_person_waiting_too_long_is_mailed_once_more(team: Program, mail: MailServer) -> None:
    recipient(types=["escalation.waiting"], wait_minutes=30)
    ask(team)
    work()
    assert mail.mails == []
    due = NOTIFICATIONS.jobs().get().due_at - timezone.now()
    assert timedelta(minutes=29) < due <= timedelta(minutes=30)
    pass_time()
    work()
    assert mail.mails == []  # it has not waited for 30 minutes
    escalate_long_ago(team)
    for _ in range(2):
        pass_time()
        work()
        (sent,) = mail.mails
        ask(team, "Hello?", thread_id="old")  # it waits since then, too
    assert "still waits for a person" in sent["Subject"]


def test_a_changed_wait_moves_what_waits(team: Program, mail: MailServer) -> None:
    row = recipient(wait_minutes=30, types=["escalation.waiting"])
    ask(team)
    row.wait_minutes = 1
    row.save()
    send_open(row)
    due = NOTIFICATIONS.jobs().get().due_at - timezone.now()
    assert timedelta(0) < due <= timedelta(minutes=1)


def test_unreachable_mail_server_loses_no_notification(team: Program, mail: MailServer) -> None:
    recipient(types=["escalation.opened"])
    mail.stop()
    ask(team)
    work()
    job = NOTIFICATIONS.jobs().get()
    assert job.last_error == "The mail server could not be reached (ConnectionRefusedError)."
    assert job.failed_at is None
    assert job.attempts == 1
    assert round((job.due_at - timezone.now()).total_seconds()) in (4, 5)


def test_a_mail_that_is_to_be_tried_later_is_sent_later_with_the_same_id(
    team: Program, mail: MailServer
) -> None:
    recipient(types=["escalation.opened"])
    mail.answers = ["451 busy"]
    ask(team)
    work()
    assert NOTIFICATIONS.jobs().get().last_error == (
        "The mail server asks to try later, with the code 451."
    )
    key = EventDelivery.objects.get().pk
    pass_time()
    work()
    assert [message["Message-ID"] for message in mail.mails] == [f"<{key}@konstruct.example>"]


def test_refused_mail_fails_and_others_are_sent(team: Program, mail: MailServer) -> None:
    recipient(addresses=["gone@example.com", "desk@example.com"], types=["escalation.opened"])
    recipient(addresses=["olga@example.com"], types=["job.failed"])
    mail.answers = ["550 no such user"]
    ask(team)
    work()
    failed = NOTIFICATIONS.jobs().failed().get()
    assert failed.last_error == "The mail server refused the mail with the code 550."
    work()
    _, sent = mail.mails
    assert mail.recipients == [["desk@example.com"], ["olga@example.com"]]
    assert "The notification failed for good" in sent["Subject"]
    assert "/admin/outbox/eventdelivery/?state=failed" in text_of(sent)
    NOTIFICATIONS.retry(failed.key)
    work()
    assert mail.recipients[2] == ["gone@example.com"]


def test_names_break_no_header(team: Program, mail: MailServer) -> None:
    recipient()
    Agent.objects.update(name="Ada\r\nBcc: all@example.com\u202e\u2028x")
    team.agent.refresh_from_db()
    ask(team)
    work()
    (sent,) = mail.mails
    assert sent["Bcc"] is None
    assert mail.recipients == [["eva@example.com"]]
    assert "Ada Bcc: all@example.com x waits" in sent["Subject"]


def test_notification_without_a_mail_server_fails_with_the_reason(
    team: Program, settings: Any
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST = ""
    recipient()
    ask(team)
    work()
    assert NOTIFICATIONS.jobs().failed().get().last_error == (
        "This deployment cannot send mail yet: ask its operator."
    )


def test_a_test_is_sent_at_once(team: Program, mail: MailServer) -> None:
    send_test(recipient())
    assert mail.mails[0]["Subject"] == "[Tenant-A] This is a test: notifications reach you here"


def test_recipients_of_another_tenant_get_no_mail(
    team: Program, program_b: Program, mail: MailServer
) -> None:
    with tenant_scope(program_b.tenant.id):
        other = recipient(addresses=["b@example.com"])
    ask(team)
    work()
    send(other.pk)  # an id of another tenant has no effect
    assert mail.mails == []
    with tenant_scope(program_b.tenant.id):
        work()
    assert mail.mails == []
