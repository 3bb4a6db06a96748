"""Waiting for a reply: workers announce it by Redis pub/sub."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from django_redis import get_redis_connection
from redis.exceptions import RedisError

from tenants.redis_keys import any_reply_channel_pattern, reply_channel_key, tenant_and_message

logger = logging.getLogger(__name__)

T = TypeVar("T")

# The cache can lose an announcement: requests that wait also poll.
POLL_SECONDS = 1.0
ANNOUNCEMENTS_PATTERN = any_reply_channel_pattern()


@dataclass(frozen=True)
class DeferredResponse:
    """The wait of a response for a message, as the response's attribute `deferred`.

    The web process waits in its event loop and then calls `finish` in a thread. It enters the
    tenant and updates the response.
    """

    tenant_id: UUID
    message_id: UUID
    seconds: float
    finish: Callable[[], None]


@dataclass(frozen=True)
class StreamingResponse:
    """A body that is sent while a message waits for its reply, as a response's attribute `stream`.

    The web process sends it from its event loop; it calls only `end` in a thread.
    """

    tenant_id: UUID
    message_id: UUID
    seconds: float
    opening: bytes
    """Sent immediately."""
    piece: Callable[[str], bytes]
    """Makes the event of some text."""
    end: Callable[[str], bytes]
    """Makes the end of the body after the wait, from the text that was sent."""
    overloaded: bytes
    """Sent instead of the end if no thread is free."""
    refused: bytes
    """Sent instead of the rest, if the caller's key or session is not valid any more."""


def announce(tenant_id: UUID, message_id: UUID) -> None:
    """Wake the requests that wait for the reply to this message."""
    try:
        get_redis_connection().publish(reply_channel_key(tenant_id, message_id), b"")
    except RedisError as error:
        logger.warning(
            "Reply to %s was not announced (%s): it will be seen late.", message_id, error
        )


def announced_message(channel: bytes) -> tuple[UUID, UUID] | None:
    """Return the tenant and the message of an announcement; None for other channels."""
    try:
        return tenant_and_message(channel.decode())
    except ValueError:
        return None


def wait_until(
    read_result: Callable[[], T | None], *, tenant_id: UUID, message_id: UUID, seconds: float
) -> T | None:
    """Return the first result of `read_result` that is not None; None after the wait.

    It blocks the caller's thread, and holds a connection to the cache.

    Args:
        read_result: called immediately, after each announcement, and every POLL_SECONDS.
        tenant_id: the tenant.
        message_id: the message.
        seconds: the longest wait.
    """
    deadline = time.monotonic() + seconds
    try:
        with get_redis_connection().pubsub(ignore_subscribe_messages=True) as subscription:
            # Subscribed before the first call, so that no announcement is missed.
            subscription.subscribe(reply_channel_key(tenant_id, message_id))
            return _poll_until(
                deadline, read_result, lambda pause: subscription.get_message(timeout=pause)
            )
    except RedisError as error:
        logger.warning("Waiting for the reply to %s without the cache: %s", message_id, error)
        return _poll_until(deadline, read_result, time.sleep)


def _poll_until(
    deadline: float, read_result: Callable[[], T | None], pause: Callable[[float], object]
) -> T | None:
    while (result := read_result()) is None and (left := deadline - time.monotonic()) > 0:
        pause(min(left, POLL_SECONDS))
    return result
