"""Heartbeats of processes: web, workers, beat and owner worker.

A process writes its heartbeat while it works. It is in the metrics, and /health/ready reports a
process without one, except web processes. A health check of a container reads the age of the file
HEARTBEAT_FILE, which is also updated while the process waits for a database or the broker: a new
process would wait too.
"""

import logging
from typing import Final

from django.conf import settings
from django_redis import get_redis_connection
from django_redis.exceptions import ConnectionInterrupted
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

# Worker processes, by their first queues.
WORKERS: Final = ("replies", "deliveries", "embeddings", "sweeps")
# A worker writes a heartbeat for each of its queues. That of embeddings has two.
QUEUES: Final = (*WORKERS, "extractions")
WEB: Final = "web"
BEAT: Final = "beat"
OWNER: Final = "owner"
# How often a heartbeat is written, and how old it may be.
INTERVAL_SECONDS: Final = 5.0
MAX_AGE_SECONDS: Final = 30
# The processes serve all tenants, so the key begins with the public schema instead of a tenant.
_KEY: Final = "public:heartbeat:{}"


def write_heartbeat(process: str) -> None:
    """Write the heartbeat of a process: in the cache, and in the file HEARTBEAT_FILE if it is set.

    If the cache is down or read-only, or the file cannot be written, the process works on, and its
    health checks report it.
    """
    touch_heartbeat_file()
    try:
        get_redis_connection().set(_KEY.format(process), 1, ex=MAX_AGE_SECONDS)
    except (RedisError, ConnectionInterrupted) as error:
        logger.debug("The heartbeat of the %s is not in the cache: %s", process, error)


def touch_heartbeat_file() -> None:
    """Update HEARTBEAT_FILE, if it is set: this process runs, and works or waits."""
    if settings.HEARTBEAT_FILE:
        try:
            settings.HEARTBEAT_FILE.touch()
        except OSError as error:
            logger.warning("The heartbeat is not in its file: %s", error)


def has_heartbeat(process: str) -> bool:
    """Return whether a process of this kind has worked within MAX_AGE_SECONDS."""
    return bool(get_redis_connection().exists(_KEY.format(process)))
