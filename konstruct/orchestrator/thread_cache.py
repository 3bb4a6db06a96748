"""Copies in the cache of rows about threads, which every message needs.

The table is the source. A reader claims the key, reads the table, and writes a copy if it still has
the claim; a change of the table removes the claim. A writer marks the key before the commit and
removes it afterwards; in between, and if it is killed in between, all readers read the table. The
mark does not contain the change, so that it is correct after a rollback too. A lost cache, or one
that is down, costs a query.
"""

import json
import logging
from collections.abc import Callable
from functools import partial
from uuid import uuid4

from django_redis import get_redis_connection
from redis.exceptions import RedisError

from tenants import transaction

logger = logging.getLogger(__name__)

# The lifetime of a copy: the longest time that a change may be missed while the cache is down.
COPY_SECONDS = 60
# Longer than any transaction that changes the table, and than reading it.
CLAIM_SECONDS = 30
CHANGING = b"changing"

# By the numbers of scopes (memory/scopes.py), which name no user.
Copy = dict[str, str]

_FILL = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
"""


def read_through(key: str, read_table: Callable[[], Copy]) -> Copy:
    """Return the rows of the table, from the copy if there is one."""
    try:
        client = get_redis_connection("default")
        held = client.get(key)
        if held is not None and held[:1] == b"{":
            copy: Copy = json.loads(held)
            return copy
        claim = f"claim {uuid4()}"
        is_ours = held is None and client.set(key, claim, nx=True, ex=CLAIM_SECONDS)
        found = read_table()
        if is_ours:
            fill = client.register_script(_FILL)
            fill(keys=[key], args=[claim, json.dumps(found), COPY_SECONDS])
    except RedisError as error:
        logger.warning("%s is read from its table: %s", key, error)
        return read_table()
    return found


def changing(key: str) -> None:
    """Invalidate the copy until the transaction ends. Call it before the change."""
    try:
        get_redis_connection("default").set(key, CHANGING, ex=CLAIM_SECONDS)
    except RedisError as error:
        logger.warning("%s could not be marked as changing: %s", key, error)
    transaction.on_commit(partial(_forget, key))


def _forget(key: str) -> None:
    try:
        get_redis_connection("default").delete(key)
    except RedisError as error:
        logger.warning("%s could not be removed: %s", key, error)
