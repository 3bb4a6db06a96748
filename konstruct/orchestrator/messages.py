"""The one form that messages and threads have inside the pipeline, whatever the channel."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from konstruct.orchestrator.models import Escalation
    from memory.models import Message


@dataclass(frozen=True, slots=True)
class Thread:
    """One conversation of an agent with a user: the agent is the thread's own, its address."""

    agent_id: UUID
    user_id: str
    thread_id: str

    @classmethod
    def of(cls, row: "KonstructMessage | Message | Escalation") -> "Thread":
        """The thread of a message, or of an escalation."""
        return cls(row.agent_id, row.user_id, row.thread_id)

    @property
    def named(self) -> dict[str, UUID | str]:
        """For filters."""
        return {"agent_id": self.agent_id, "user_id": self.user_id, "thread_id": self.thread_id}


@dataclass(frozen=True, slots=True)
class KonstructMessage:
    """An accepted message of an end user, as the pipeline hands it from step to step.

    `user_id` and `thread_id` are the channel's own ids. `name` is the speaker's display name, as in
    the OpenAI message format, or "" where the channel knows none.
    """

    id: UUID
    tenant_id: UUID
    agent_id: UUID
    user_id: str
    thread_id: str
    channel: str
    content: str
    name: str = ""
    created_at: datetime | None = None


def konstruct_message(row: "Message") -> KonstructMessage:
    """Return the pipeline's form of a transcript row."""
    return KonstructMessage(
        id=row.id,
        tenant_id=row.tenant_id,
        agent_id=row.agent_id,
        user_id=row.user_id,
        thread_id=row.thread_id,
        channel=row.channel,
        content=row.content,
        name=row.name,
        created_at=row.created_at,
    )
