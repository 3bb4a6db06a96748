"""Removes a person's keys from the cache, in one scan over the tenant's keys.

The broker is not searched: its tasks have ids of rows, which no longer exist.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from django_redis import get_redis_connection

from konstruct.privacy.erasure.person import OF_PERSON, Person
from memory.conversations.reading import decode
from tenants.context import fetch_column
from tenants.redis_keys import (
    all_keys_pattern,
    engaged_thread_key,
    escalation_status_key,
    escape_part,
    pending_tool_confirm_key,
    session_key,
)

OF_THREAD = (session_key, engaged_thread_key, escalation_status_key, pending_tool_confirm_key)
BATCH = 1000

_WINDOW, _OF_MESSAGES = ("memory", "short"), ("dedup", "partial_reply")
_THEIRS = f"SELECT id::text FROM memory_message WHERE id::text = ANY(%(ids)s) AND {OF_PERSON}"


def remove_keys(person: Person) -> int:
    """Remove windows, marks of messages, and the state of the person's own threads; return the
    number.

    A window is found by the user's id in its key; a mark or the text of a reply by the message's
    id, while the message exists.
    """
    client = get_redis_connection("default")
    threads = {
        name(person.tenant_id, thread)
        for thread in filter(None, person.threads)
        for name in OF_THREAD
    }
    removed = 0
    for keys in _all_keys(client, person):
        of_messages = _of_messages(keys)
        theirs = [key for key in keys if key in threads or _is_window(key, person)]
        theirs += _shared_windows(client, set(keys) - set(theirs), person)
        messages = _messages_among([id for id, _ in of_messages], person)
        theirs += [key for id, key in of_messages if id in messages]
        if theirs:
            removed += client.unlink(*theirs)
    return removed


def _all_keys(client: Any, person: Person) -> Iterator[list[str]]:
    """Yield all keys of the tenant, in batches."""
    keys = client.scan_iter(match=all_keys_pattern(person.tenant_id), count=BATCH)
    while batch := [key.decode() for key in islice(keys, BATCH)]:
        yield batch


def _is_window(key: str, person: Person) -> bool:
    parts = key.split(":")
    if len(parts) != 5 or tuple(parts[1:3]) != _WINDOW:
        return False
    of_agent = person.agent_id is None or parts[3] == str(person.agent_id)
    return of_agent and parts[4] in {escape_part(user_id) for user_id in person.user_ids}


def _shared_windows(client: Any, keys: set[str], person: Person) -> list[str]:
    """Return windows of threads with messages of the person and of others: they are rebuilt."""
    windows = sorted(key for key in keys if key.split(":")[1:2] == ["session"])
    reading = client.pipeline(transaction=False)
    for key in windows:
        reading.lrange(key, 0, -1)
    held = reading.execute(raise_on_error=False)
    return [
        key
        for key, entries in zip(windows, held, strict=True)
        if isinstance(entries, list)
        and any((decode(entry) or {}).get("user_id") in person.user_ids for entry in entries)
    ]


def _of_messages(keys: list[str]) -> list[tuple[str, str]]:
    """Return the keys with a message's id in their name, with that id."""
    named = ((key.split(":"), key) for key in keys)
    return [(parts[2], key) for parts, key in named if len(parts) == 3 and parts[1] in _OF_MESSAGES]


def _messages_among(ids: list[str], person: Person) -> set[str]:
    if not ids:
        return set()
    return set(fetch_column(_THEIRS, person.parameters(ids=ids)))
