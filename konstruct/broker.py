"""Kombu's transport for Redis: a closed channel raises an error that Celery handles."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kombu.transport import redis as kombu_redis
from redis.exceptions import ConnectionError as BrokerDown


class Channel(kombu_redis.Channel):
    """A channel that raises BrokerDown after it is closed.

    When the broker is lost, Celery closes the channel. Later calls, such as the acknowledgement of
    a task that was running, need the connection that kombu 5.7.0 has just removed: the worker ends
    with AttributeError: 'NoneType' object has no attribute 'hostname' or 'client'. Celery handles a
    lost connection. A task that is lost with it loses no work: the outbox sends it again.
    """

    @contextmanager
    def conn_or_acquire(self, client: Any = None) -> Iterator[Any]:
        """Yield a client of the broker; raise BrokerDown if the channel is closed."""
        if client is None and getattr(self.connection, "client", None) is None:
            raise BrokerDown("the connection to the broker is closed")
        with super().conn_or_acquire(client) as connected:
            yield connected


class Transport(kombu_redis.Transport):
    """Kombu's transport for Redis with this Channel."""

    Channel = Channel
