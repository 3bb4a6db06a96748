"""Cache connections that start the embedded Valkey before the first use."""

from django_redis.pool import ConnectionFactory as DjangoRedisConnectionFactory
from redis import Redis

from konstruct import embedded


class ConnectionFactory(DjangoRedisConnectionFactory):
    """django-redis' factory; used only where no REDIS_URL is set."""

    def connect(self, url: str) -> Redis:
        """Start what is not running, then connect."""
        embedded.ensure_valkey()
        return super().connect(url)
