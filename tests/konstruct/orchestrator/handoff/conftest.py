"""Other agents for handovers; they hand threads over, and read their messages."""

from typing import Any

import pytest

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.handoff import handovers
from konstruct.orchestrator.handoff.escalations import OpenedBy, Thread
from konstruct.orchestrator.models import Agent, Escalation
from memory.models import Message
from tests.konstruct.conftest import Program
from tests.servers.llm import Answer


@pytest.fixture
def bert(program: Program) -> Agent:
    """Another agent of the same tenant."""
    return create_agent(tenant_id=program.tenant.id, name="bert", system_prompt="You are Bert.")


@pytest.fixture
def carl(program: Program) -> Agent:
    """A third agent."""
    return create_agent(tenant_id=program.tenant.id, name="carl", system_prompt="You are Carl.")


FIRST = "This is bert. This conversation was handed to me."


def reply(message: Message) -> Message | None:
    return Message.objects.filter(in_reply_to=message).first()


def answer_to(message: Message) -> tuple[str, str] | None:
    """Return the answering agents and their replies."""
    found = reply(message)
    return None if found is None else (found.name, found.content)


def hand(message: Message, agent: Agent, by: OpenedBy = OpenedBy.PROGRAM) -> Escalation:
    handover, _ = handovers.hand_over(
        Thread.of(message), agent.id, opened_by=by, name="crm", reason="Invoices are Bert's."
    )
    return handover


def call(name: str, **arguments: Any) -> Answer:
    """Return a tool call of a language model."""
    function = {"name": name, "arguments": arguments}
    return Answer({"tool_calls": [{"id": "c", "function": function}]})


def offered(request: Any) -> set[str]:
    return {tool["function"]["name"] for tool in request.body.get("tools", ())}


def words(request: Any) -> str:
    return "\n".join(str(message["content"]) for message in request.body["messages"])
