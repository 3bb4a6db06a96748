"""Who answers in a thread: its own agent, another agent of the tenant, or a person.

The table of escalations is the truth; what is asked at every message is a copy in the cache.
"""

from dataclasses import dataclass
from functools import partial
from uuid import UUID

from konstruct.orchestrator import thread_cache
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import Escalation
from memory.scopes import scope_number
from tenants.context import required_tenant_id
from tenants.redis_keys import escalation_status_key

# In the copy: "person", and the message that asked for them; or "agent", and the agent's id.
PERSON, AGENT = "person", "agent"


@dataclass(frozen=True, slots=True)
class Answering:
    """Who answers instead of the thread's own agent."""

    agent_id: UUID | None = None
    """Another agent; None: a person."""
    asked_by: str = ""
    """The message that asked for the person, if one did."""

    @property
    def is_person(self) -> bool:
        """Whether a person answers."""
        return self.agent_id is None


def who_answers(thread: Thread) -> Answering | None:
    """Who answers in this thread of the tenant that we are in; None: its own agent."""
    key = escalation_status_key(required_tenant_id(), thread.thread_id)
    scope = str(scope_number(thread.agent_id, thread.user_id))
    held = thread_cache.read_through(key, partial(_open_in, thread.thread_id)).get(scope)
    return None if held is None else _read(held)


def is_changing(thread: Thread) -> None:
    """Let nobody trust the copy until the transaction is over. Call it before the change."""
    thread_cache.changing(escalation_status_key(required_tenant_id(), thread.thread_id))


def _open_in(thread_id: str) -> thread_cache.Copy:
    rows = Escalation.objects.open().filter(thread_id=thread_id)
    return {
        str(scope_number(agent_id, user_id)): f"{AGENT} {to_agent_id}"
        if to_agent_id
        else f"{PERSON} {message_id or ''}".strip()
        for agent_id, user_id, to_agent_id, message_id in rows.values_list(
            "agent_id", "user_id", "to_agent_id", "message_id"
        )
    }


def _read(held: str) -> Answering:
    kind, _, which = held.partition(" ")
    if kind == AGENT:
        return Answering(agent_id=UUID(which))
    # What a worker of the version before has written is the message alone.
    return Answering(asked_by=which if kind == PERSON else held)
