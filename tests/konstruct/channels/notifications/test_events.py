"""Events that people are notified of: consents, failures, erasures and reviews; and exceptions."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from konstruct.llm.completions import LLMRefused
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import ToolCall
from konstruct.orchestrator.replies import REPLIES
from konstruct.privacy.erasure.erasing import carry_out
from memory.models import Message
from tenants.audit.access_log import Actor
from tenants.audit.models import ErasureRequest
from tenants.context import tenant_scope
from tenants.outbox.events import record_event
from tenants.outbox.models import NOTIFICATIONS, EventDelivery, EventType, OutboxEvent
from tests.database import as_owner
from tests.konstruct.channels.notifications.conftest import ask, pass_time, recipient, work
from tests.konstruct.conftest import Program
from tests.konstruct.extracted import propose
from tests.servers.mail import MailServer

OPERATOR = Actor.operator("olga")


def subjects(mail: MailServer) -> list[str]:
    return [str(message["Subject"]) for message in mail.mails]


def ask_for_consent(program: Program) -> ToolCall:
    """Create a tool call that has waited for consent for an hour."""
    ask(program, "I like tea")
    message = Message.objects.get(content="I like tea")
    call = ToolCall.objects.create(
        message=message,
        agent_id=message.agent_id,
        user_id=message.user_id,
        thread_id=message.thread_id,
        round=0,
        position=0,
        call_id="c1",
        name="remember_fact",
        arguments={},
        question="May I?",
        state="waiting",
        created_at=timezone.now() - timedelta(hours=1),
        expires_at=timezone.now() + timedelta(hours=1),
    )
    record_event(EventType.TOOL_CALL_WAITING, call.pk, about=message)
    return call


def test_a_consent_that_waits_is_mailed(team: Program, mail: MailServer) -> None:
    recipient()
    call = ask_for_consent(team)
    work()
    assert mail.mails == []
    pass_time()
    work()
    assert "A tool call of ada (remember_fact) waits for the user's consent" in subjects(mail)[0]
    assert f"/admin/orchestrator/toolcall/{call.pk}/change/" in mail.mails[0].get_content()
    assert "May I?" not in mail.mails[0].get_content()


def fail_reply(message: Message) -> None:
    REPLIES.enqueue_again(message.pk)
    REPLIES.record_failure(message.pk, LLMRefused("refused"))


def test_failed_jobs_are_mailed_at_most_once_an_hour(team: Program, mail: MailServer) -> None:
    recipient()
    ask(team, "Hello")
    message = Message.objects.get(content="Hello")
    for _ in range(2):
        fail_reply(message)
        work()
        assert len(mail.mails) == 1
    assert "The reply failed for good at " in subjects(mail)[0]
    assert "/admin/orchestrator/pendingreply/?state=failed" in mail.mails[0].get_content()
    EventDelivery.objects.update(created_at=timezone.now() - timedelta(hours=1))
    fail_reply(message)
    work()
    assert len(mail.mails) == 2


def test_an_erasure_that_is_not_done_is_mailed(team: Program, mail: MailServer) -> None:
    recipient(wait_minutes=15)
    ask(team, "Hello")
    request = request_erasure("maria", by=OPERATOR)
    work()
    assert mail.mails == []
    assert NOTIFICATIONS.jobs().get().due_at > timezone.now() + timedelta(minutes=14)
    pass_time()
    work()
    assert "An erasure is not done, requested at " in subjects(mail)[0]
    assert f"/admin/audit/erasurerequest/{request.pk}/" in mail.mails[0].get_content()
    assert "maria" not in mail.mails[0].get_content()
    other = ErasureRequest.objects.create(user_id="ole", requested_by="eva", done_at=timezone.now())
    record_event(EventType.ERASURE_REQUESTED, other.pk)
    pass_time()
    work()
    assert len(mail.mails) == 1
    assert not NOTIFICATIONS.jobs().exists()


def test_many_proposed_facts_are_mailed_once_a_day(team: Program, mail: MailServer) -> None:
    recipient(review_threshold=2, addresses=["two@example.com"])
    recipient(review_threshold=3, addresses=["three@example.com"])
    ask(team, "My sister lives in Lisbon")
    message = Message.objects.get(content="My sister lives in Lisbon")
    for number in range(2):
        propose(message, "Lisbon", f"Fact {number}")
        pass_time()
        work()
    assert subjects(mail) == ["[Tenant-A] 2 or more proposed facts wait for a review"]
    assert mail.recipients == [["two@example.com"]]
    propose(message, "Lisbon", "Fact 2")
    pass_time()
    work()
    assert mail.recipients[1:] == [["three@example.com"]]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_notifications_contain_no_data_of_an_erased_person(team: Program, mail: MailServer) -> None:
    recipient(includes_content=True)
    ask(team)
    waiting = EventDelivery.objects.filter(event__type=EventType.ESCALATION_OPENED)
    assert waiting.get().event.user_id == "maria"
    request = request_erasure("maria", by=OPERATOR)
    with as_owner(), tenant_scope(team.tenant.id):
        carry_out(request)
    with tenant_scope(team.tenant.id):
        assert not EventDelivery.objects.filter(event__user_id="maria").exists()
        pass_time()
        work()
        # The erasure was done in time, so it causes no notification.
        assert mail.mails == []


def test_deactivated_member_gets_no_mail(team: Program, mail: MailServer) -> None:
    eva = User.objects.create_user("eva", email="eva@example.com")
    recipient(addresses=["eva@example.com", "desk@example.com"])
    recipient(addresses=["eva@example.com"])
    ask(team)
    eva.is_active = False
    eva.save()
    work()
    assert mail.recipients == [["desk@example.com"]]
    assert EventDelivery.objects.filter(event__type="escalation.opened").count() == 1


def test_failures_of_own_deliveries_are_not_reported_to_the_recipient(
    team: Program, mail: MailServer
) -> None:
    recipient()
    mail.answers = ["550 no such user"]
    ask(team)
    work()
    failed = NOTIFICATIONS.jobs().failed().get()
    assert OutboxEvent.objects.get(type=EventType.JOB_FAILED).subject_id == failed.key
    EventDelivery.objects.update(created_at=timezone.now() - timedelta(hours=2))
    assert not EventDelivery.objects.filter(event__type=EventType.JOB_FAILED).exists()


def test_a_rule_has_any_event_and_other_events_are_named(team: Program, mail: MailServer) -> None:
    recipient(types=[EventType.ERASURE_DONE])
    record_event(EventType.ERASURE_DONE, uuid4())
    work()
    event = OutboxEvent.objects.get()
    assert subjects(mail)[0].startswith("[Tenant-A] An erasure is done, ")
    assert f"/admin/outbox/outboxevent/{event.pk}/change/" in mail.mails[0].get_content()
