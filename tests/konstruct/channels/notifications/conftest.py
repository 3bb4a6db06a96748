"""A mail server, recipients, and a user who asks for a person."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission, User

from konstruct.channels.models import SlackInstallation, SlackMember
from konstruct.channels.notifications.checks import CHECKS, NOTIFICATIONS, check_row
from konstruct.channels.notifications.sending import send
from konstruct.orchestrator import pipeline
from konstruct.orchestrator.models import Agent, Event, NotificationRecipient, PendingReply
from konstruct.orchestrator.notifications import notify_of_all_open
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program
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
    with tenant_scope(program_a.tenant.id):
        Agent.objects.update(escalate_on=["human"])
        yield program_a


def recipient(**fields: Any) -> NotificationRecipient:
    """Add a recipient of all events to the current tenant."""
    values = {
        "destination": "mail",
        "email": "eva@example.com",
        "events": Event.values,
        **fields,
    }
    row = NotificationRecipient.objects.create(**values)
    row.refresh_from_db()
    notify_of_all_open()
    return row


def slack_recipient(**fields: Any) -> NotificationRecipient:
    """Add the Slack channel C9 of the workspace T1 as a recipient."""
    return recipient(destination="slack", email="", workspace="T1", slack_channel="C9", **fields)


def member(slack_id: str = "U7", *permissions: str, workspace: str = "T1") -> User:
    """Add a member of the team with this Slack user."""
    user = User.objects.create_user(f"eva-{slack_id.lower()}", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    installation = SlackInstallation.objects.get(workspace=workspace)
    SlackMember.objects.create(installation=installation, slack_id=slack_id, member=user)
    return user


def ask(
    program: Program, content: str = QUESTION, *, user_id: str = "maria", thread_id: str = "t1"
) -> None:
    """Accept a message, and answer all waiting messages."""
    incoming = Incoming(
        agent_id=program.agent.id,
        user_id=user_id,
        thread_id=thread_id,
        channel="rest",
        content=content,
    )
    accept(incoming, tenant_id=program.tenant.id)
    for message_id in list(PendingReply.objects.due().values_list("pk", flat=True)):
        pipeline.handle(tenant_id=program.tenant.id, message_id=message_id)


def keys(kind: Any) -> list[UUID]:
    """Return the keys of due jobs."""
    return list(kind.jobs().due().values_list("key", flat=True))


def work() -> None:
    """Run the due jobs."""
    for key in keys(CHECKS):
        check_row(key)
    for key in keys(NOTIFICATIONS):
        send(key)


def pass_time() -> None:
    """Make all jobs due."""
    for kind in (CHECKS, NOTIFICATIONS):
        kind.jobs().waiting().update(due_at="2000-01-01T00:00:00Z")
