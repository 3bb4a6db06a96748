"""Fixtures that send messages through the real pipeline, with the test's language model server."""

from collections.abc import Callable
from typing import Any

import pytest

from konstruct.orchestrator import pipeline
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from memory.models import Message
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program
from tests.servers.llm import LLMServer


@pytest.fixture
def program(program_a: Program, llm_server: LLMServer, settings: Any) -> Any:
    """A program of tenant A, whose agents use the test's language model server."""
    settings.LLM_POOL_URL = llm_server.url
    with tenant_scope(program_a.tenant.id):
        yield program_a


@pytest.fixture
def send_message(program: Program) -> Callable[..., Message]:
    """Send a message to the program's agent. With `handled` a worker answers it immediately."""

    def send_message(
        content: str = "Hello",
        *,
        user_id: str = "maria",
        thread_id: str = "t1",
        channel: str = "rest",
        handled: bool = True,
    ) -> Message:
        incoming = Incoming(program.agent.id, user_id, thread_id, channel, content)
        message, _ = accept(incoming, tenant_id=program.tenant.id)
        if handled:
            pipeline.handle(tenant_id=message.tenant_id, message_id=message.id)
        return message

    return send_message
