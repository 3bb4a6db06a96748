"""Fixtures that send messages through the real pipeline, with the test's language model server."""

from typing import Any

import pytest

from konstruct.orchestrator import pipeline
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from konstruct.orchestrator.replies import Status, progress_of, sent_messages
from memory.models import Message
from tests import database
from tests.konstruct.conftest import Program, SendMessage
from tests.servers.llm import LLMServer


@pytest.fixture
def program(program_a: Program, llm_server: LLMServer, settings: Any) -> Any:
    """A program of tenant A, whose agents use the test's language model server."""
    settings.LLM_POOL_URL = llm_server.url
    with database.inside(program_a.tenant):
        yield program_a


@pytest.fixture
def send_message(program: Program) -> SendMessage:
    """Send a message to the program's agent. With `handled` a worker answers it immediately."""

    def send_message(
        content: str = "Hello",
        *,
        user_id: str = "maria",
        thread_id: str = "t1",
        channel: str = "rest",
        name: str = "",
        handled: bool = True,
    ) -> Message:
        incoming = Incoming(program.agent.id, user_id, thread_id, channel, content, name)
        message, _ = accept(incoming, tenant_id=program.tenant.id)
        if handled:
            handle(message)
        return message

    return send_message


def handle(message: Message) -> None:
    """Handle a message as a worker of replies does."""
    pipeline.handle(tenant_id=message.tenant_id, message_id=message.id)


def status(message: Message) -> Status:
    """Return the status that the API shows."""
    return progress_of(sent_messages().get(pk=message.pk)).status


def reply(message: Message) -> str | None:
    """Return the text of the reply."""
    return Message.objects.filter(in_reply_to=message).values_list("content", flat=True).first()
