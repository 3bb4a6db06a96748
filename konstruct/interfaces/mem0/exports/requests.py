"""Exports that a key has asked for: filters and schema, for a week in the cache.

What memories say is never among it: an export is made of the memories that there are when it is
fetched.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import uuid4

from django_redis import get_redis_connection
from django_redis.exceptions import ConnectionInterrupted
from redis.exceptions import RedisError

from konstruct.api.auth.caller import Caller
from konstruct.api.http.errors.problems import Problem, Refusal
from tenants.context import required_tenant_id
from tenants.redis_keys import mem0_exports_key

SECONDS: Final = 7 * 24 * 3600
MOST: Final = 100


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What is to be exported, as it was sent; `whose` names those whom the filters name."""

    id: str
    filters: Any
    schema: Any
    instructions: str
    whose: dict[str, list[str]]


def keep(
    caller: Caller, *, filters: Any, schema: Any, instructions: str, whose: dict[str, list[str]]
) -> ExportRequest:
    """Keep a request, the newest of at most `MOST` of this key."""
    request = ExportRequest(str(uuid4()), filters, schema, instructions, whose)
    key = _key(caller)
    try:
        pipeline = get_redis_connection("default").pipeline()
        pipeline.lpush(key, json.dumps(asdict(request)))
        pipeline.ltrim(key, 0, MOST - 1)
        pipeline.expire(key, SECONDS)
        pipeline.execute()
    except (RedisError, ConnectionInterrupted) as error:
        raise Refusal(Problem.of_status(503, headers={"Retry-After": "5"})) from error
    return request


def kept(caller: Caller) -> Iterator[ExportRequest]:
    """What this key has asked for, newest first."""
    try:
        rows = get_redis_connection("default").lrange(_key(caller), 0, -1)
    except (RedisError, ConnectionInterrupted) as error:
        raise Refusal(Problem.of_status(503, headers={"Retry-After": "5"})) from error
    return (ExportRequest(**json.loads(row)) for row in rows)


def _key(caller: Caller) -> str:
    return mem0_exports_key(required_tenant_id(), caller.id)
