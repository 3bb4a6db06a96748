"""The window of one thread: its last turns, of all speakers and agents.

For channels whose threads are shared by all their participants, such as Slack's. Like the window of
a user it is a copy of the transcript in the cache, rebuilt if it was lost. It does not show turns
that a user's cleared window covers.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django_redis import get_redis_connection
from redis.exceptions import RedisError

from memory.arguments import count_argument, id_argument
from memory.conf import WINDOW
from memory.conversations import window_store
from memory.conversations.conversation import Turn, decode
from memory.conversations.window_store import MAX_ATTEMPTS
from memory.models import Message, WindowClear
from tenants.context import required_tenant_id, tenant_scope
from tenants.redis_keys import session_key, thread_windows_pattern

logger = logging.getLogger(__name__)

_shared_channels: set[str] = set()


def register_shared_channel(channel: str) -> None:
    """Register a channel in which all participants of a thread read all its messages."""
    _shared_channels.add(channel)


def shared_channels() -> frozenset[str]:
    """Return the channels with threads that all participants share."""
    return frozenset(_shared_channels)


@dataclass(frozen=True)
class ThreadTurn(Turn):
    """A turn of a thread, with its user and agent."""

    user_id: str = ""
    answered_by: str = ""

    @classmethod
    def of(cls, message: Message) -> Self:
        """Return the turn of a message of the transcript."""
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
        """Return the fields as a dict."""
        return {**super().as_dict(), "user_id": self.user_id, "answered_by": self.answered_by}


def invalidate_all_threads(tenant_id: UUID | str) -> None:
    """Invalidate the windows of all threads of a tenant; readers rebuild them.

    For erasing, moving and retention, after they have changed the transcript.
    """
    with tenant_scope(tenant_id):
        client = get_redis_connection("default")
        for key in client.scan_iter(match=thread_windows_pattern(required_tenant_id()), count=1000):
            window_store.invalidate(key.decode())


def get_thread_turns(
    tenant_id: UUID | str, thread_id: str, channel: str, n: int = WINDOW
) -> list[dict[str, Any]]:
    """Return the last n turns of a thread, oldest first, with any state of their replies.

    One query compares the copy in the cache with the transcript. The window is rebuilt from the
    transcript if the cache has lost it, or if one of its turns is cleared or missing in the
    transcript. While the cache is down, the transcript is read.

    Returns:
        Dicts like those of `get_recent_messages`, with "user_id", and for a reply "answered_by".
    """
    n = count_argument("n", n, minimum=0)
    with tenant_scope(tenant_id):
        try:
            key = _key(thread_id)
            entries = window_store.read(key)
            turns = _decode_all(entries)
            if not _are_current(turns, thread_id, channel):
                turns = _rebuild(key, thread_id, channel, entries)
        except RedisError as error:
            logger.warning("thread %s is read from the transcript: %s", thread_id, error)
            turns = [turn.as_dict() for turn in last_turns_of_thread(thread_id, channel)]
    # Two simultaneous turns may be appended in the other order.
    turns.sort(key=lambda turn: str(turn.get("at", "")))
    return turns[-n:] if n else []


def append_to_thread(tenant_id: UUID | str, message: Message) -> None:
    """Append a message of the transcript to its thread's window once, however often it is called.

    If the window lacks the turn before it, it is rebuilt. While the cache is down, a line is
    logged, and the next turn finds the gap.
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
                before=str(previous or window_store.NO_PREVIOUS_TURN),
            ):
                _rebuild(key, message.thread_id, message.channel, window_store.read(key))
        except RedisError as error:
            logger.warning("thread %s was not appended to: %s", message.thread_id, error)


def invalidate_threads(tenant_id: UUID | str, thread_ids: Iterable[str]) -> None:
    """Invalidate the windows of these threads; readers rebuild them.

    Call it after the commit that changed the transcript.

    Raises:
        RedisError: the cache is down.
    """
    with tenant_scope(tenant_id):
        for thread_id in thread_ids:
            window_store.invalidate(_key(thread_id))


def threads_of(agent_id: UUID, user_id: str) -> list[str]:
    """Return the shared threads in which a user has spoken with an agent of the current tenant."""
    rows = Message.objects.filter(agent_id=agent_id, user_id=user_id, channel__in=_shared_channels)
    return list(rows.values_list("thread_id", flat=True).order_by().distinct())


def is_end_of_thread(entries: Sequence[bytes], thread_id: str, channel: str) -> bool:
    """Return whether the entries of a window are the end of its thread in the transcript."""
    ids = {turn.get("message_id") for turn in _decode_all(entries)}
    if not ids:
        return True  # it was invalidated; the next reader rebuilds it
    return ids == {
        turn.message_id for turn in last_turns_of_thread(thread_id, channel)[-len(ids) :]
    }


def last_turns_of_thread(thread_id: str, channel: str) -> list[ThreadTurn]:
    """Return the last turns of a thread of the current tenant, oldest first."""
    return [ThreadTurn.of(row) for row in reversed(_turns(thread_id, channel)[:WINDOW])]


def _turns(thread_id: str, channel: str) -> QuerySet[Message]:
    """Return the turns of a thread that no cleared window covers, newest first."""
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


def _are_current(turns: Sequence[Mapping[str, Any]], thread_id: str, channel: str) -> bool:
    """Return whether there are turns, all of them in the transcript and not cleared."""
    ids = {turn["message_id"] for turn in turns if "message_id" in turn}
    if not ids:
        return False
    return _turns(thread_id, channel).filter(pk__in=ids).count() == len(ids)


def _rebuild(
    key: str, thread_id: str, channel: str, expected: Sequence[bytes]
) -> list[dict[str, Any]]:
    """Write the window from the transcript; repeat it if another writer changed the window."""
    for _ in range(MAX_ATTEMPTS):
        turns = last_turns_of_thread(thread_id, channel)
        entries = [turn.encode() for turn in turns]
        if window_store.write(key, entries, window=WINDOW, expected=expected):
            break
        expected = window_store.read(key)
    else:
        window_store.invalidate(key)
    return [turn.as_dict() for turn in turns]


def _decode_all(entries: Iterable[bytes]) -> list[dict[str, Any]]:
    return [turn for turn in map(decode, entries) if turn is not None]


def _key(thread_id: str) -> str:
    return session_key(required_tenant_id(), thread_id)
