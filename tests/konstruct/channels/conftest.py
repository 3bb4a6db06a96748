"""Fixtures of channels: a Slack server on loopback, and connected workspaces."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from konstruct.channels.delivery import DELIVERIES
from konstruct.channels.slack.installations import connect
from konstruct.orchestrator import pipeline
from konstruct.orchestrator.models import PendingReply
from memory.models import Message
from tenants.context import tenant_scope
from tests.jobs import work
from tests.konstruct.conftest import Program
from tests.servers.llm import LLMServer
from tests.servers.slack import (
    CLIENT_ID,
    CLIENT_SECRET,
    SIGNING_SECRET,
    SlackServer,
    signed,
    slack_server,
)

EVENTS = "/channels/slack/events/"


@pytest.fixture
def slack(settings: Any) -> Iterator[SlackServer]:
    """A Slack server that the settings point at."""
    with slack_server() as server:
        settings.SLACK_API_URL = server.url
        settings.SLACK_SIGNING_SECRET = SIGNING_SECRET
        settings.SLACK_CLIENT_ID, settings.SLACK_CLIENT_SECRET = CLIENT_ID, CLIENT_SECRET
        yield server


@pytest.fixture
def connected(
    program_a: Program, slack: SlackServer, llm_server: LLMServer, settings: Any
) -> Program:
    """Tenant A, whose agent answers in the workspace T1."""
    settings.LLM_POOL_URL = llm_server.url
    install(program_a, slack, "T1")
    return program_a


def install(program: Program, slack: SlackServer, workspace: str) -> None:
    """Connect a workspace to a program's tenant and agent."""
    connect(
        tenant_id=program.tenant.id,
        agent_id=program.agent.id,
        workspace=workspace,
        bot_user_id=slack.workspaces[workspace].bot,
        token=slack.workspaces[workspace].token,
        by="eva",
    )


@pytest.fixture
def post() -> Callable[..., Any]:
    """Send a request as Slack does; return the response."""

    def send(document: Any, *, path: str = EVENTS, **options: Any) -> Any:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        headers = options.pop("headers", None) or signed(body)
        client = Client(raise_request_exception=False, headers={"Host": "localhost"})
        options.setdefault("content_type", "application/json")
        return client.post(path, body, headers=headers, **options)

    return send


def take_in_all(program: Program) -> None:
    """Process the inbox."""
    work("arrival")


def answer_all(program: Program) -> None:
    """Run the workers: process the inbox, answer the messages, deliver the replies."""
    take_in_all(program)
    with tenant_scope(program.tenant.id):
        for message_id in list(PendingReply.objects.due().values_list("pk", flat=True)):
            pipeline.handle(tenant_id=program.tenant.id, message_id=message_id)
    show_all(program)


def show_all(program: Program) -> None:
    """Process the inbox and the due deliveries."""
    take_in_all(program)
    work("delivery")


def make_due(program: Program) -> None:
    """Make all jobs due."""
    with tenant_scope(program.tenant.id):
        past = "2000-01-01T00:00:00Z"
        DELIVERIES.jobs().waiting().update(due_at=past, sweep_at=past)


def messages(program: Program) -> list[tuple[str, str, str, str]]:
    """Return user, thread, content and name of the accepted messages."""
    take_in_all(program)
    with tenant_scope(program.tenant.id):
        rows = Message.objects.filter(role="user").order_by("number")
        return list(rows.values_list("user_id", "thread_id", "content", "name"))
