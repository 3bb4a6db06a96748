"""The number of the scope of one agent and one user in the index of recall. Pure."""

from datetime import UTC, datetime
from hashlib import blake2b
from uuid import UUID


def scope_number(agent_id: UUID, user_id: str) -> int:
    """The scope of an agent and a user, as Postgres' bigint: computed, so that no lookup is needed.

    Two pairs of one tenant share a number with a probability of one in 10^7 at a million users;
    the primary key of Scope then refuses the second.
    """
    return _number(agent_id.bytes, user_id.encode())


def session_number(thread_id: str, created_at: datetime) -> int:
    """The conversation that a message belongs to: its thread, on its day.

    A thread may be a channel that never ends; messages of last spring are another conversation.
    """
    return _number(thread_id.encode(), created_at.astimezone(UTC).date().isoformat().encode())


def _number(*parts: bytes) -> int:
    digest = blake2b(b"\x00".join(parts), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
