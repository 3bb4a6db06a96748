"""A mail server, recipients, and a user who asks for a person."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission, User

from konstruct.channels.models import SlackInstallation, SlackMember
from konstruct.channels.notifications import OPEN_TYPES, send_open
from konstruct.channels.webhooks import send
from konstruct.orchestrator import pipeline
from konstruct.orchestrator.models import Agent, PendingReply
from tenants import transaction
from tenants.outbox.models import NOTIFICATIONS, EventType, Subscription
from tests import database
from tests.konstruct.conftest import Program
from tests.konstruct.sending import send_message
from tests.servers.llm import LLMServer
from tests.servers.mail import MailServer

QUESTION = "I want to talk to a human about <!channel> my dog Bello"


@pytest.fixture
def mail(mail: MailServer, settings: Any) -> MailServer:
    """The mail server, with a sender."""
    settings.EMAIL_FROM = "Konstruct <no-reply@konstruct.example>"
    return mail


@pytest.fixture
def team(program_a: Program, llm_server: LLMServer, settings: Any) -> Iterator[Program]:
    """A program of tenant A with a language model; the test runs in its tenant."""
    settings.LLM_POOL_URL = llm_server.url
    with database.inside(program_a.tenant):
        Agent.objects.update(escalate_on=["human"])
        yield program_a


def recipient(**fields: Any) -> Subscription:
    """Add a recipient of events that a person has to act on to the current tenant."""
    values = {
        "target": "mail",
        "addresses": ["eva@example.com"],
        "types": [*OPEN_TYPES, EventType.JOB_FAILED],
        **fields,
    }
    with transaction.atomic():
        row = Subscription.objects.create(**values)
        send_open(row)
    row.refresh_from_db()
    return row


def slack_recipient(**fields: Any) -> Subscription:
    """Add the Slack channel C9 of the workspace T1 as a recipient."""
    return recipient(target="slack", addresses=[], workspace="T1", slack_channel="C9", **fields)


def member(slack_id: str = "U7", *permissions: str, workspace: str = "T1") -> User:
    """Add a member of the team with this Slack user."""
    user = User.objects.create_user(f"eva-{slack_id.lower()}", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    installation = SlackInstallation.objects.get(workspace=workspace)
    SlackMember.objects.create(installation=installation, slack_id=slack_id, member=user)
    return user


def ask(program: Program, content: str = QUESTION, **fields: Any) -> None:
    """Accept a message, and answer all waiting messages."""
    send_message(program.tenant, program.agent, content, answered=False, **fields)
    for message_id in list(PendingReply.objects.due().values_list("pk", flat=True)):
        pipeline.handle(tenant_id=program.tenant.id, message_id=message_id)


def keys() -> list[UUID]:
    """Return the keys of due jobs."""
    return list(NOTIFICATIONS.jobs().due().values_list("key", flat=True))


def work() -> None:
    """Run the due jobs."""
    for key in keys():
        send(key)


def pass_time() -> None:
    """Make all jobs due."""
    NOTIFICATIONS.jobs().waiting().update(due_at="2000-01-01T00:00:00Z")
