"""The window of one thread: its last turns, whoever said them, to whichever of the agents.

For channels whose threads are the same for everybody who speaks in them, such as Slack's. Like the
window of a user it is a copy in the cache of what the transcript says, rebuilt when it was lost.
What a user's cleared window covers does not come back by it.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django_redis import get_redis_connection
from redis.exceptions import RedisError

from memory.arguments import count_argument, id_argument
from memory.conf import WINDOW
from memory.conversations import window_store
from memory.conversations.turns import Turn, decode
from memory.models import Message, WindowClear
from tenants.context import required_tenant_id, tenant_scope
from tenants.redis_keys import session_key, thread_windows_pattern

logger = logging.getLogger(__name__)

_sharing: set[str] = set()


def share(channel: str) -> None:
    """Note that whoever speaks in a thread of this channel reads what the others say there."""
    _sharing.add(channel)


def sharing() -> frozenset[str]:
    """The channels whose threads are the same for everybody who speaks in them."""
    return frozenset(_sharing)


@dataclass(frozen=True)
class ThreadTurn(Turn):
    """A turn of a thread, with whose it is."""

    user_id: str = ""
    answered_by: str = ""

    @classmethod
    def of(cls, message: Message) -> Self:
        """The turn of a message of the transcript."""
        return cls(
            role=message.role,
            content=message.content,
            message_id=str(message.pk),
            name=message.name,
            at=message.created_at.isoformat(),
            user_id=message.user_id,
            answered_by=str(message.answered_by_id or ""),
        )

    def as_dict(self) -> dict[str, Any]:
        """What is known of it."""
        return {**super().as_dict(), "user_id": self.user_id, "answered_by": self.answered_by}


def forget_all_threads(tenant_id: UUID | str) -> None:
    """Let the windows of all threads of a tenant be rebuilt: of what was said, something is gone.

    For erasing, moving and retention, which change what the transcript says.
    """
    with tenant_scope(tenant_id):
        client, version = get_redis_connection("default"), _clears()
        for key in client.scan_iter(match=thread_windows_pattern(required_tenant_id()), count=1000):
            window_store.clear(key.decode(), version)


def get_thread_turns(
    tenant_id: UUID | str, thread_id: str, channel: str, n: int = WINDOW
) -> list[dict[str, Any]]:
    """The last n turns of a thread, oldest first; answered, waiting or held.

    A window that the cache has lost is rebuilt from the transcript; where the cache is away, the
    transcript is read.

    Returns:
        Dicts as `get_recent_messages` gives them, with "user_id", and of a reply "answered_by".
    """
    n = count_argument("n", n, minimum=0)
    with tenant_scope(tenant_id):
        try:
            key = _key(thread_id)
            turns = _decoded(window_store.read(key))
            if not turns:
                turns = _rebuild(key, thread_id, channel)
        except RedisError as error:
            logger.warning("thread %s is read from the transcript: %s", thread_id, error)
            turns = [turn.as_dict() for turn in transcript_of(thread_id, channel)]
    # Two that speak at once may be appended in the other order.
    turns.sort(key=lambda turn: str(turn.get("at", "")))
    return turns[-n:] if n else []


def append_to_thread(tenant_id: UUID | str, message: Message) -> None:
    """Append a message of the transcript to its thread's window, once however often this is run.

    Where the window lacks the turn before it, it is rebuilt. A cache that is away is logged; the
    next turn will find the gap.
    """
    with tenant_scope(tenant_id):
        before = _turns(message.thread_id, message.channel).filter(
            Q(created_at__lt=message.created_at)
            | Q(created_at=message.created_at, number__lt=message.number)
        )
        previous = before.values_list("pk", flat=True).first()
        try:
            key = _key(message.thread_id)
            if not window_store.append(
                key,
                [ThreadTurn.of(message)],
                window=WINDOW,
                before=str(previous or window_store.FIRST),
            ):
                _rebuild(key, message.thread_id, message.channel)
        except RedisError as error:
            logger.warning("thread %s was not appended to: %s", message.thread_id, error)


def forget_threads(tenant_id: UUID | str, thread_ids: Iterable[str]) -> None:
    """Let the windows of these threads be rebuilt: something in them was cleared.

    Who has read the transcript before that cannot write it back. Raises a RedisError if the cache
    is away.
    """
    with tenant_scope(tenant_id):
        version = _clears()
        for thread_id in thread_ids:
            window_store.clear(_key(thread_id), version)


def threads_of(agent_id: UUID, user_id: str) -> list[str]:
    """The shared threads in which a user has spoken with an agent of the current tenant."""
    rows = Message.objects.filter(agent_id=agent_id, user_id=user_id, channel__in=_sharing)
    return list(rows.values_list("thread_id", flat=True).order_by().distinct())


def rebuild_thread(tenant_id: UUID | str, thread_id: str, channel: str) -> None:
    """Replace the window by what the transcript has."""
    with tenant_scope(tenant_id):
        _rebuild(_key(thread_id), thread_id, channel)


def is_thread_tail(entries: Sequence[bytes], thread_id: str, channel: str) -> bool:
    """Whether a window that the cache holds is the end of its thread in the transcript."""
    held = {turn.get("message_id") for turn in _decoded(entries)}
    if not held:
        return True  # it was forgotten, and is rebuilt by who reads it
    return held == {turn.message_id for turn in transcript_of(thread_id, channel)[-len(held) :]}


def transcript_of(thread_id: str, channel: str) -> list[ThreadTurn]:
    """The last turns of a thread of the current tenant, oldest first."""
    return [ThreadTurn.of(row) for row in reversed(_turns(thread_id, channel)[:WINDOW])]


def _turns(thread_id: str, channel: str) -> QuerySet[Message]:
    """What was said in the thread and is in no cleared window, the newest first."""
    clears = WindowClear.objects.filter(
        Q(last_number__gte=OuterRef("number")) | Q(created_at__gt=OuterRef("created_at")),
        agent_id=OuterRef("agent_id"),
        user_id=OuterRef("user_id"),
    )
    rows = Message.objects.filter(
        ~Exists(clears),
        tenant_id=required_tenant_id(),
        thread_id=id_argument("thread_id", thread_id),
        channel=channel,
    )
    return rows.order_by("-created_at", "-number")


def _rebuild(key: str, thread_id: str, channel: str) -> list[dict[str, Any]]:
    """Write the window from the transcript; again, if it was cleared meanwhile."""
    while True:
        version = _clears()
        turns = transcript_of(thread_id, channel)
        if window_store.write(key, turns, window=WINDOW, cleared=version, replace=True):
            return [turn.as_dict() for turn in turns]


def _clears() -> int:
    """The newest of all clears, which grows."""
    return WindowClear.objects.aggregate(newest=Max("id"))["newest"] or 0


def _decoded(entries: Iterable[bytes]) -> list[dict[str, Any]]:
    return [turn for turn in map(decode, entries) if turn is not None]


def _key(thread_id: str) -> str:
    return session_key(required_tenant_id(), thread_id)
