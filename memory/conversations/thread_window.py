"""The window of one thread: its last turns, of all speakers and agents.

For channels whose threads are shared by all their participants, such as Slack's. Like the window of
a user it is a copy of the transcript in the cache, rebuilt if it was lost. It does not show turns
that a user's cleared window covers.
"""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, Self
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django_redis import get_redis_connection
from redis.exceptions import RedisError

from memory.arguments import count_argument, id_argument
from memory.conf import WINDOW
from memory.conversations import window_store
from memory.conversations.window_store import Turn, Window
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
        answered_by = str(message.answered_by_id or "")
        return replace(super().of(message), user_id=message.user_id, answered_by=answered_by)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return {**super().as_dict(), "user_id": self.user_id, "answered_by": self.answered_by}


@dataclass(frozen=True)
class ThreadWindow(Window):
    """The window of a thread of the current tenant."""

    key: str
    thread_id: str
    channel: str

    @classmethod
    def of(cls, thread_id: str, channel: str) -> Self:
        return cls(session_key(required_tenant_id(), thread_id), thread_id, channel)

    def transcript(self, size: int) -> list[ThreadTurn]:
        """Return the last turns of the thread, oldest first."""
        return [ThreadTurn.of(row) for row in reversed(self.turns()[:size])]

    def count_current(self, message_ids: Collection[str]) -> int:
        """Return how many of the messages are in the transcript, not cleared and not excluded."""
        return self.turns().filter(pk__in=message_ids).count()

    def turns(self) -> QuerySet[Message]:
        """Return the turns of the thread, newest first, without cleared and excluded ones."""
        clears = WindowClear.objects.filter(
            Q(last_number__gte=OuterRef("number")) | Q(created_at__gt=OuterRef("created_at")),
            agent_id=OuterRef("agent_id"),
            user_id=OuterRef("user_id"),
        )
        rows = Message.objects.not_excluded().filter(
            ~Exists(clears),
            tenant_id=required_tenant_id(),
            thread_id=id_argument("thread_id", self.thread_id),
            channel=self.channel,
        )
        return rows.order_by("-created_at", "-number")


def delete_all_threads(tenant_id: UUID | str) -> None:
    """Delete the windows of all threads of a tenant in the cache; readers write them again.

    For erasing, moving and retention, after they have changed the transcript.
    """
    with tenant_scope(tenant_id):
        client = get_redis_connection("default")
        keys = client.scan_iter(match=thread_windows_pattern(required_tenant_id()), count=1000)
        window_store.delete(*map(bytes.decode, keys))


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
        window = ThreadWindow.of(thread_id, channel)
        try:
            turns = window.read(WINDOW)
        except RedisError as error:
            logger.warning("a thread is read from the transcript: %s", error)
            turns = [turn.as_dict() for turn in window.transcript(WINDOW)]
    # Two simultaneous turns may be appended in the other order.
    turns.sort(key=lambda turn: str(turn.get("at", "")))
    return turns[-n:] if n else []


def append_to_thread(tenant_id: UUID | str, message: Message) -> None:
    """Append a message of the transcript to its thread's window once, however often it is called.

    If the window lacks the turn before it, it is rebuilt. While the cache is down, a line is
    logged, and the next turn finds the gap.
    """
    with tenant_scope(tenant_id):
        window = ThreadWindow.of(message.thread_id, message.channel)
        before = window.turns().filter(
            Q(created_at__lt=message.created_at)
            | Q(created_at=message.created_at, number__lt=message.number)
        )
        previous = before.values_list("pk", flat=True).first()
        try:
            window.append(
                [ThreadTurn.of(message)], WINDOW, str(previous or window_store.NO_PREVIOUS_TURN)
            )
        except RedisError as error:
            logger.warning("the thread of message %s was not appended to: %s", message.pk, error)


def delete_threads(tenant_id: UUID | str, thread_ids: Iterable[str]) -> None:
    """Delete the windows of these threads in the cache; readers write them again.

    Call it after the commit that changed the transcript.

    Raises:
        RedisError: the cache is down.
    """
    with tenant_scope(tenant_id):
        tenant = required_tenant_id()
        window_store.delete(*(session_key(tenant, thread_id) for thread_id in thread_ids))


def threads_of(agent_id: UUID, user_id: str) -> list[str]:
    """Return the shared threads in which a user has spoken with an agent of the current tenant."""
    rows = Message.objects.filter(agent_id=agent_id, user_id=user_id, channel__in=_shared_channels)
    return list(rows.values_list("thread_id", flat=True).order_by().distinct())
