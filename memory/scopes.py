"""The number of the scope of an agent and a user in the index of recall. Pure."""

from datetime import datetime
from hashlib import blake2b
from uuid import UUID


def scope_number(agent_id: UUID, user_id: str) -> int:
    """Return the scope of an agent and a user as a Postgres bigint, computed without a lookup.

    Two pairs of one tenant share a number with a probability of one in 10^7 at a million users;
    then the primary key of Scope refuses the second.
    """
    return _number(agent_id.bytes, user_id.encode())


def session_number(thread_id: str, created_at: datetime) -> int:
    """Return the conversation of a message: its thread on its day, by the time zone of the moment.

    A thread may be a channel that never ends; its messages of last spring are another conversation.
    """
    return _number(thread_id.encode(), created_at.date().isoformat().encode())


def _number(*parts: bytes) -> int:
    digest = blake2b(b"\x00".join(parts), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
