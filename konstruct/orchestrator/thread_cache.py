"""A read-through cache of rows about threads, which every message needs.

A reader that finds no value claims the key, reads the table, and writes the value if the key still
has its claim. A writer replaces the key by a marker before its commit, which removes all claims,
and deletes the key afterwards. While the marker exists, also after a writer was killed, readers
read the table. If the cache is down or empty, a read costs a query.
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

# The lifetime of a value: the longest time that a change may be missed while the cache is down.
TTL_SECONDS = 60
# Lifetime of a claim or a marker: longer than any transaction that changes or reads the table.
CLAIM_SECONDS = 30
CHANGING_MARKER = b"changing"

# Values by the number of a scope (memory/scopes.py), which does not contain the user's id.
CachedRows = dict[str, str]

_FILL = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
"""


def read_through(key: str, read_table: Callable[[], CachedRows]) -> CachedRows:
    """Return the rows of the table, from the cache if it has them."""
    try:
        client = get_redis_connection("default")
        value = client.get(key)
        if value is not None and value[:1] == b"{":
            return json.loads(value)
        claim = f"claim {uuid4()}"
        has_claim = value is None and client.set(key, claim, nx=True, ex=CLAIM_SECONDS)
        rows = read_table()
        if has_claim:
            fill = client.register_script(_FILL)
            fill(keys=[key], args=[claim, json.dumps(rows), TTL_SECONDS])
    except RedisError as error:
        logger.warning("%s is read from its table: %s", key, error)
        return read_table()
    return rows


def invalidate(key: str) -> None:
    """Invalidate the cached rows until the transaction ends. Call it before the change."""
    try:
        get_redis_connection("default").set(key, CHANGING_MARKER, ex=CLAIM_SECONDS)
    except RedisError as error:
        logger.warning("%s could not be marked as changing: %s", key, error)
    transaction.on_commit(partial(_delete, key))


def _delete(key: str) -> None:
    try:
        get_redis_connection("default").delete(key)
    except RedisError as error:
        logger.warning("%s could not be removed: %s", key, error)
