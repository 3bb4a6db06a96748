"""Checks that windows in the cache are the ends of their transcripts."""

import json
from collections.abc import Iterator, Sequence
from uuid import UUID

from django_redis import get_redis_connection

from konstruct.consistency.records import Finding
from konstruct.orchestrator.models import PendingReply
from memory.conversations import short_term, thread_window, window_store
from memory.conversations.conversation import Conversation, decode
from memory.models import Message
from tenants.context import required_tenant_id
from tenants.redis_keys import memory_short_key, session_key, thread_windows_pattern

NOT_THE_TAIL = "window that is not the end of its transcript"
NOT_THE_THREAD = "window of a thread that is not the end of its transcript"
UNKNOWN_TURNS = "window with turns of no message"


def check() -> Iterator[Finding]:
    """Compare every window in the cache."""
    tenant_id = required_tenant_id()
    pairs = set(Message.objects.values_list("agent_id", "user_id").order_by().distinct())
    # A reply is written first and then appended: in between they differ for a moment.
    in_work = set(
        PendingReply.objects.filter(message__reply__isnull=False).values_list(
            "message__agent_id", "message__user_id"
        )
    )
    checked_keys = set()
    for agent_id, user_id in sorted(pairs):
        key = memory_short_key(tenant_id, agent_id, user_id)
        checked_keys.add(key)
        entries = window_store.read(key)
        if not entries or (agent_id, user_id) in in_work:
            continue
        if not short_term.is_end_of_transcript(entries, Conversation(tenant_id, agent_id, user_id)):
            subject = json.dumps([str(agent_id), user_id], ensure_ascii=False)
            detail = f"has {len(_message_ids(entries))} turns of messages"
            yield Finding(NOT_THE_TAIL, subject, detail)
    for key in keys(tenant_id):
        if key not in checked_keys and _message_ids(window_store.read(key)):
            yield Finding(UNKNOWN_TURNS, key)

    yield from _check_threads()


def _check_threads() -> Iterator[Finding]:
    """Compare the windows of shared threads."""
    tenant_id, client = required_tenant_id(), get_redis_connection("default")
    pattern = thread_windows_pattern(tenant_id)
    held = {key.decode() for key in client.scan_iter(match=pattern, count=1000)}
    if not held:
        return
    threads = Message.objects.filter(channel__in=thread_window.shared_channels())
    for thread_id, channel in threads.values_list("thread_id", "channel").order_by().distinct():
        key = session_key(tenant_id, thread_id)
        if key in held:
            held.discard(key)
            entries = window_store.read(key)
            if not thread_window.is_end_of_thread(entries, thread_id, channel):
                yield Finding(NOT_THE_THREAD, json.dumps([thread_id, channel]))
    for key in sorted(held):
        if _message_ids(window_store.read(key)):
            yield Finding(UNKNOWN_TURNS, key)


def count() -> dict[str, int]:
    """Count the windows in the cache."""
    return {"windows": sum(1 for _ in keys(required_tenant_id()))}


def keys(tenant_id: UUID) -> Iterator[str]:
    """Yield the keys of all windows of the tenant in the cache."""
    pattern = f"{memory_short_key(tenant_id, 'x', 'x').removesuffix('x:x')}*"
    for key in get_redis_connection("default").scan_iter(match=pattern, count=1000):
        yield key.decode()


def rebuild(findings: Sequence[Finding]) -> None:
    """Write the windows from the transcript."""
    for finding in findings:
        agent_id, user_id = json.loads(finding.subject)
        short_term.rebuild_window(required_tenant_id(), agent_id, user_id)


def rebuild_threads(findings: Sequence[Finding]) -> None:
    """Write the windows of threads from the transcript."""
    for finding in findings:
        thread_window.rebuild_thread(required_tenant_id(), *json.loads(finding.subject))


def remove(findings: Sequence[Finding]) -> None:
    """Remove windows that belong to no transcript."""
    get_redis_connection("default").unlink(*(finding.subject for finding in findings))


def _message_ids(entries: Sequence[bytes]) -> list[str]:
    turns = [turn for turn in map(decode, entries) if turn is not None]
    return [turn["message_id"] for turn in turns if "message_id" in turn]


REPAIRS = {NOT_THE_TAIL: rebuild, NOT_THE_THREAD: rebuild_threads, UNKNOWN_TURNS: remove}
