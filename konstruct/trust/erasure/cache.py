"""A person's keys in the cache, and tasks about them in the broker."""

import base64
import json
from collections.abc import Iterator
from typing import Any

from django_redis import get_redis_connection

from konstruct.celery import app
from konstruct.trust.erasure.person import Person
from tenants.redis_keys import (
    all_keys_pattern,
    engaged_thread_key,
    escalation_status_key,
    escape_part,
    idempotency_key,
    memory_short_key,
    pending_tool_confirm_key,
    session_key,
)

OF_THREAD = (session_key, engaged_thread_key, escalation_status_key, pending_tool_confirm_key)
QUEUES = ("replies", "embeddings", "deliveries")
# Where kombu keeps the tasks that a worker has taken and not done.
TAKEN, TAKEN_INDEX = "unacked", "unacked_index"


def remove_keys(person: Person) -> int:
    """Remove windows, marks of messages, and the state of the person's own threads."""
    client = get_redis_connection("default")
    keys = list(_keys(person))
    return sum(client.unlink(*keys[start : start + 1000]) for start in range(0, len(keys), 1000))


def left_keys(person: Person) -> list[str]:
    """Keys of the tenant that name the person, or hold an id of what was theirs."""
    client = get_redis_connection("default")
    ours = set(_keys(person))
    ids = {each.encode() for each in person.ids}
    left = []
    for raw in client.scan_iter(match=all_keys_pattern(person.tenant_id), count=1000):
        if raw.decode() in ours or any(each in _value(client, raw) for each in ids):
            left.append(raw.decode())
    return left


def remove_tasks(person: Person) -> int:
    """Remove tasks that name a message of theirs; the sweepers find again what else such one names.

    A broker that is not Redis is left alone: its tasks hold ids, nothing that was said, and find
    nothing any more.
    """
    if app.connection_for_write().transport.driver_type != "redis":
        return 0
    removed = 0
    with app.connection_for_write() as broker:
        # Of kombu's Redis transport.
        client = broker.default_channel.client  # type: ignore[attr-defined]
        for queue in QUEUES:
            for task in client.lrange(queue, 0, -1):
                if _is_about(task, person):
                    removed += client.lrem(queue, 0, task)
        for tag, task in client.hgetall(TAKEN).items():
            if _is_about(task, person):
                client.zrem(TAKEN_INDEX, tag)
                removed += client.hdel(TAKEN, tag)
    return removed


def _keys(person: Person) -> Iterator[str]:
    tenant, user = person.tenant_id, escape_part(person.user_id)
    for agent in person.agents:
        yield memory_short_key(tenant, agent, user)
    if person.agent_id is None:
        # Windows of agents that the transcript knows nothing of.
        client = get_redis_connection("default")
        for key in client.scan_iter(match=f"{tenant}:memory:short:*", count=1000):
            if key.decode().split(":", 4)[4] == user:
                yield key.decode()
    for each in person.ids:
        yield idempotency_key(tenant, each)
    for thread in filter(None, person.threads):
        yield from (name(tenant, escape_part(thread)) for name in OF_THREAD)


def _value(client: Any, key: bytes) -> bytes:
    kind = client.type(key)
    if kind == b"list":
        return b"\n".join(client.lrange(key, 0, -1))
    if kind == b"string":
        return bytes(client.get(key) or b"")
    if kind == b"hash":
        return b"\n".join(part for pair in client.hgetall(key).items() for part in pair)
    if kind == b"set":
        return b"\n".join(client.smembers(key))
    if kind == b"zset":
        return b"\n".join(client.zrange(key, 0, -1))
    return b""


def _is_about(task: bytes, person: Person) -> bool:
    """Whether the body of a task, or its description in a header, names one of the ids."""
    message = json.loads(task)
    # A task that was taken is wrapped with where it came from.
    message = message[0] if isinstance(message, list) else message
    body = base64.b64decode(message["body"]).decode(errors="replace")
    whole = body + json.dumps(message.get("headers", {}))
    return str(person.tenant_id) in whole and any(each in whole for each in person.ids)
