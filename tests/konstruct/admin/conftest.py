"""Fixtures of the admin: logged-in clients, and a tenant with rows of each kind."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

import pytest

from konstruct.llm.completions import LLMRefused
from konstruct.orchestrator import replies
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.models import Agent
from memory.conversations.short_term import clear_window
from memory.conversations.transcript import add_items
from memory.facts import LongTermMemory
from memory.indexing import drain
from memory.long_term import store_embedding
from memory.models import MemoryEntry, Message
from tenants.context import tenant_scope
from tests.konstruct import sending
from tests.konstruct.conftest import Program, SendMessage
from tests.konstruct.extracted import propose

MARKUP = "<script>alert(1)</script>"
CONTENTS = (
    "My sister lives in Lisbon and visits in May.",
    f"I am allergic to shellfish {MARKUP}",
    "Where does my sister live?",
)


@pytest.fixture(scope="session")
def send_message() -> SendMessage:
    """Send a message as a channel does. With `answered` the pipeline answers it immediately."""

    def send(program: Program, content: str, **fields: Any) -> Message:
        with tenant_scope(program.tenant.id):
            return sending.send_message(program.tenant, program.agent, content, **fields)

    return send


@pytest.fixture(scope="session")
def fail() -> Callable[[Program, UUID], None]:
    """Make the reply to a message fail."""

    def give_up(program: Program, message_id: UUID) -> None:
        with tenant_scope(program.tenant.id):
            replies.REPLIES.record_failure(message_id, LLMRefused("No such model: gpt-0."))

    return give_up


@pytest.fixture(scope="session")
def populate(
    send_message: SendMessage, fail: Callable[[Program, UUID], None]
) -> Callable[[Program], Program]:
    """Create rows of each kind in the tenant of a program, with the services."""

    def make(program: Program) -> Program:
        tenant_id, agent_id = program.tenant.id, program.agent.id
        for content in CONTENTS:
            send_message(program, content)
            drain(tenant_id)
        clear_window(tenant_id, agent_id, "maria")
        store_embedding(tenant_id, agent_id, "maria", "Stored directly.", "user", [1.0] * 384)
        with tenant_scope(tenant_id):
            add_items(agent_id, "maria", "t", [({"of": program.tenant.slug}, None)])
        facts = LongTermMemory()
        fact = facts.store(
            MemoryEntry(
                tenant_id=tenant_id,
                agent_id=agent_id,
                user_id="maria",
                content=f"Of {program.tenant.slug}: likes tea.",
                metadata={"topic": "drinks"},
            )
        )
        facts.update(fact, tenant_id, content=f"Of {program.tenant.slug}: likes green tea.")
        fail(program, send_message(program, "Answer me!", answered=False).id)
        send_message(program, f"I wait in {program.tenant.slug}.", answered=False, user_id="bob")
        return program

    return make


@pytest.fixture
def populated_a(program_a: Program, populate: Callable[[Program], Program]) -> Program:
    """Tenant A with rows of each kind."""
    return populate(program_a)


@pytest.fixture
def populated_b(program_b: Program, populate: Callable[[Program], Program]) -> Program:
    """Tenant B with the same."""
    return populate(program_b)


@pytest.fixture(scope="session")
def add_pending(send_message: SendMessage) -> Callable[[Program], Program]:
    """Add an escalation, a tool call without a decision, and a linked identity."""

    def add(program: Program) -> Program:
        with tenant_scope(program.tenant.id):
            Agent.objects.update(tools=["remember_fact"])
        send_message(program, "Please remember that I like tea.", user_id="zoe", thread_id="tools")
        send_message(program, "talk to a human", user_id="zoe", thread_id="help")
        send_message(program, "Is anybody there?", user_id="zoe", thread_id="help")
        with tenant_scope(program.tenant.id):
            identity = channel_identities.identity_of("slack", "T1", "U1", "Maria")
            channel_identities.link(identity, "maria", by="eva")
            message = Message.objects.filter(content=CONTENTS[0]).earliest("number")
        propose(message, "Lisbon", "Maria's sister lives in Lisbon.", slot="sister_city")
        return program

    return add


@pytest.fixture(scope="module")
def module_populated(
    module_transaction: Callable[[], AbstractContextManager[None]],
    module_program: Program,
    populate: Callable[[Program], Program],
) -> Program:
    """Tenant A with rows of each kind, once for a module whose tests do not commit."""
    with module_transaction():
        return populate(module_program)


@pytest.fixture
def pending_a(populated_a: Program, add_pending: Callable[[Program], Program]) -> Program:
    """Tenant A with rows of each kind, an escalation and a tool call without a decision."""
    return add_pending(populated_a)


@pytest.fixture
def pending_b(populated_b: Program, add_pending: Callable[[Program], Program]) -> Program:
    """The same in tenant B."""
    return add_pending(populated_b)
