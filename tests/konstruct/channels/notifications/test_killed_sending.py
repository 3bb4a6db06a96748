"""Processes killed before any statement of sending: no notification is lost.

A mail can arrive twice, with the same Message-ID. In Slack there is one post.
"""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from konstruct.channels.webhooks import send
from konstruct.orchestrator.handoff.escalations import OpenedBy, open_escalation
from konstruct.orchestrator.messages import Thread
from memory.conversations.transcript import record_message
from tenants.context import tenant_scope
from tenants.outbox.models import NOTIFICATIONS, EventDelivery
from tests.konstruct.channels.conftest import install
from tests.konstruct.channels.notifications.conftest import keys, recipient, slack_recipient
from tests.konstruct.conftest import Program
from tests.konstruct.privacy.test_killed_jobs import _status_of_child, _wait_until_unlocked
from tests.servers.mail import MailServer
from tests.servers.slack import SlackServer

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

MAX_STATEMENTS = 80


@pytest.fixture
def escalated(program_a: Program) -> Iterator[Program]:
    """A user waits for a person. The block runs in the tenant."""
    with tenant_scope(program_a.tenant.id):
        yield program_a


def escalate(program: Program) -> Any:
    """Open an escalation, and return its id."""
    thread = Thread(program.agent.id, "maria", "t1")
    record_message(
        tenant_id=program.tenant.id,
        **thread.as_filter,
        channel="rest",
        role="user",
        content="Hello",
    )
    return open_escalation(thread, opened_by=OpenedBy.PERSON, reason="")[0].pk


def kill_everywhere(program: Program, work: Any) -> int:
    """Kill a process before each statement of the work, then do the work. Return the kills."""
    for before in range(2, MAX_STATEMENTS):
        status = _status_of_child(program.tenant, work, before)
        if status != -signal.SIGKILL:
            assert status == 0
            return before - 2
        _wait_until_unlocked()
    raise AssertionError("the work has too many statements")


def kill_sending(program: Program) -> None:
    """Escalate, and kill the worker that sends the notification."""
    escalate(program)
    (key,) = keys()

    def work() -> None:
        NOTIFICATIONS.cancel_attempts()
        send(key)

    assert kill_everywhere(program, work) > 10
    assert not NOTIFICATIONS.jobs().exists()


def test_killed_worker_sends_mails_with_one_id(escalated: Program, mail: MailServer) -> None:
    recipient(types=["escalation.opened"])
    kill_sending(escalated)
    assert len({message["Message-ID"] for message in mail.mails}) == 1
    assert len({message.get_content() for message in mail.mails}) == 1
    assert EventDelivery.objects.get().delivered_at is not None


@pytest.mark.data
def test_killed_worker_posts_once_in_slack(escalated: Program, slack: SlackServer) -> None:
    install(escalated, slack, "T1")
    slack_recipient(types=["escalation.opened"])
    kill_sending(escalated)
    assert len(slack.posts("T1")) == 1
    assert "conversations.history" in slack.methods()
