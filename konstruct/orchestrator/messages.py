"""The one form that a message has inside the pipeline, whatever channel it came from."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


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
