"""Posts in Slack that a message was refused because a quota of the tenant is used up."""

import logging
from typing import Final

from celery import shared_task
from django_redis import get_redis_connection
from django_redis.exceptions import ConnectionInterrupted
from redis.exceptions import RedisError

from konstruct.channels.exceptions import ChannelError
from konstruct.channels.slack.adapter import token_of_workspace
from konstruct.channels.slack.web_api import call_slack
from tenants.redis_keys import idempotency_key
from tenants.serving import TenantTask

logger = logging.getLogger(__name__)

# A thread gets at most one such post in this time.
PAUSE_SECONDS: Final = 3600


@shared_task(base=TenantTask)
def tell_refused(tenant_id: str, workspace: str, channel: str, thread_ts: str, text: str) -> None:
    """Post that a message is refused, once in a while. Safe to run twice.

    Errors are logged: the next refused message of the thread tries again after the pause.
    """
    key = idempotency_key(tenant_id, f"refused/{workspace}/{channel}/{thread_ts}")
    try:
        if not get_redis_connection("default").set(key, 1, ex=PAUSE_SECONDS, nx=True):
            return
        call_slack(
            "chat_postMessage",
            token=token_of_workspace(workspace),
            channel=channel,
            thread_ts=thread_ts or None,
            text=text,
        )
    except (ChannelError, RedisError, ConnectionInterrupted) as error:
        logger.warning("Slack does not show that a message is refused: %s", error)
