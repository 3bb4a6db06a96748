"""The file of the cache: append-only, or a snapshot. It holds removed values until a rewrite."""

import logging
import time
from typing import Final

from django_redis import get_redis_connection
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS: Final = 30.0


def rewrite_cache_file() -> str:
    """Have the cache rewrite its file, so that removed values are no longer in it.

    Returns:
        `rewritten`; `none` if it has no file; `refused` if the cache forbids it; `unfinished`
        after TIMEOUT_SECONDS.
    """
    client = get_redis_connection("default")
    try:
        state = client.info("persistence")
        if state.get("aof_enabled"):
            running, ask = "aof_rewrite", client.bgrewriteaof
        elif state.get("rdb_last_save_time") and state.get("rdb_saves", 1):
            running, ask = "rdb_bgsave", client.bgsave
        else:
            return "none"
        ask()
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            state = client.info("persistence")
            if not state.get(f"{running}_in_progress") and not state.get(f"{running}_scheduled"):
                ended = state.get("aof_last_bgrewrite_status", state.get("rdb_last_bgsave_status"))
                return "rewritten" if ended == "ok" else "unfinished"
            time.sleep(0.05)
    except RedisError as error:
        logger.warning("The cache's file is not written anew: %s", error)
        return "refused"
    return "unfinished"
