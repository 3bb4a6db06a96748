"""Engaged threads: where the agent has been spoken to, it answers without being mentioned again."""

import logging
from uuid import UUID

from django_redis import get_redis_connection
from django_redis.exceptions import ConnectionInterrupted
from redis.exceptions import RedisError

from konstruct.channels.slack.workspaces.installations import CHANNEL
from memory.models import Message
from tenants.redis_keys import engaged_thread_key

logger = logging.getLogger(__name__)

# An engaged thread stays engaged: what the cache forgets is read in the transcript.
REMEMBERED_SECONDS = 7 * 24 * 3600


def engage(tenant_id: UUID, thread_id: str) -> None:
    """Note that the agent has been spoken to in a thread."""
    try:
        get_redis_connection("default").set(_key(tenant_id, thread_id), 1, ex=REMEMBERED_SECONDS)
    except (RedisError, ConnectionInterrupted) as error:
        logger.warning("Thread %s was not noted as engaged: %s", thread_id, error)


def is_engaged(tenant_id: UUID, thread_id: str) -> bool:
    """Tell whether the agent has been spoken to in a thread of the tenant that we are in."""
    try:
        if get_redis_connection("default").exists(_key(tenant_id, thread_id)):
            return True
    except (RedisError, ConnectionInterrupted) as error:
        logger.warning("Whether thread %s is engaged: %s", thread_id, error)
    if not Message.objects.filter(thread_id=thread_id, channel=CHANNEL).exists():
        return False
    engage(tenant_id, thread_id)
    return True


def _key(tenant_id: UUID, thread_id: str) -> str:
    return engaged_thread_key(tenant_id, thread_id)
