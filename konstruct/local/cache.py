"""Cache connections that see to it, whenever they connect, that the embedded Valkey runs."""

from typing import Any

from redis.connection import UnixDomainSocketConnection

from konstruct.local import embedded


class EmbeddedConnection(UnixDomainSocketConnection):
    """redis-py's connection, used only where no REDIS_URL is set."""

    def connect_check_health(self, *args: Any, **kwargs: Any) -> None:
        """Start what is not running, then connect; reconnects come through here too.

        redis-py comes here before each command. To see that Valkey runs takes 2 ms, which only a
        connection that is to be opened is worth.
        """
        if self._sock is None:
            embedded.ensure_valkey()
        super().connect_check_health(*args, **kwargs)
