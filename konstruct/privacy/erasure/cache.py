"""Removes the keys of a person from the cache, in one scan over the tenant's keys.

The broker is not searched, because its tasks contain only ids of rows.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from django_redis import get_redis_connection

from konstruct.privacy.erasure.person import OF_PERSON, Person
from memory.conversations.conversation import decode
from tenants.context import fetch_column
from tenants.redis_keys import (
    all_keys_pattern,
    engaged_thread_key,
    escalation_status_key,
    escape_part,
    pending_tool_confirm_key,
    session_key,
)

THREAD_KEYS = (session_key, engaged_thread_key, escalation_status_key, pending_tool_confirm_key)
BATCH = 1000

_WINDOW_PARTS, _MESSAGE_PARTS = ("memory", "short"), ("dedup", "partial_reply")
_MESSAGES_OF_PERSON = (
    f"SELECT id::text FROM memory_message WHERE id::text = ANY(%(ids)s) AND {OF_PERSON}"
)


def remove_keys(person: Person) -> int:
    """Remove the keys of the person's windows, messages and threads; return their number.

    The key of a window has the id of the user. Keys of messages (deduplication, partial replies)
    have the id of the message, and are found while the message exists.
    """
    client = get_redis_connection("default")
    threads = {
        name(person.tenant_id, thread)
        for thread in filter(None, person.threads)
        for name in THREAD_KEYS
    }
    removed = 0
    for keys in _all_keys(client, person):
        matching = [key for key in keys if key in threads or _is_window(key, person)]
        matching += _shared_windows(client, set(keys) - set(matching), person)
        message_keys = _message_keys(keys)
        message_ids = _messages_of_person([id for id, _ in message_keys], person)
        matching += [key for id, key in message_keys if id in message_ids]
        if matching:
            removed += client.unlink(*matching)
    return removed


def _all_keys(client: Any, person: Person) -> Iterator[list[str]]:
    """Yield all keys of the tenant, in batches."""
    keys = client.scan_iter(match=all_keys_pattern(person.tenant_id), count=BATCH)
    while batch := [key.decode() for key in islice(keys, BATCH)]:
        yield batch


def _is_window(key: str, person: Person) -> bool:
    parts = key.split(":")
    if len(parts) != 5 or tuple(parts[1:3]) != _WINDOW_PARTS:
        return False
    of_agent = person.agent_id is None or parts[3] == str(person.agent_id)
    return of_agent and parts[4] in {escape_part(user_id) for user_id in person.user_ids}


def _shared_windows(client: Any, keys: set[str], person: Person) -> list[str]:
    """Return windows of shared threads with turns of the person. They are rebuilt when needed."""
    windows = sorted(key for key in keys if key.split(":")[1:2] == ["session"])
    pipeline = client.pipeline(transaction=False)
    for key in windows:
        pipeline.lrange(key, 0, -1)
    found = []
    for key, entries in zip(windows, pipeline.execute(raise_on_error=False), strict=True):
        turns = [decode(entry) or {} for entry in entries] if isinstance(entries, list) else []
        if any(turn.get("user_id") in person.user_ids for turn in turns):
            found.append(key)
    return found


def _message_keys(keys: list[str]) -> list[tuple[str, str]]:
    """Return the keys that contain the id of a message, each as (id, key)."""
    split_keys = ((key.split(":"), key) for key in keys)
    return [
        (parts[2], key)
        for parts, key in split_keys
        if len(parts) == 3 and parts[1] in _MESSAGE_PARTS
    ]


def _messages_of_person(ids: list[str], person: Person) -> set[str]:
    if not ids:
        return set()
    return set(fetch_column(_MESSAGES_OF_PERSON, person.parameters(ids=ids)))
