"""A cache older or newer than the database: windows equal the transcript."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django_redis import get_redis_connection

from memory.conversations import short_term
from memory.conversations.transcript import record_message
from memory.conversations.window_store import Turn, append_to_thread, get_thread_turns
from memory.models import Message, PendingEmbedding, WindowClear
from tenants import transaction
from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.redis_keys import session_key
from tests import database
from tests.memory.conversations.window import AGENT, USER, contents, key_of

pytestmark = pytest.mark.django_db(transaction=True)

THREAD = "T1/C1/17.5"


@pytest.fixture
def exchange(tenant_a: Tenant) -> Callable[..., Message]:
    """Store a message in a shared thread, and its reply. Return the reply."""

    def exchange(question: str, answer: str, tenant: Tenant = tenant_a) -> Message:
        named: Any = {
            "tenant_id": tenant.id, "agent_id": AGENT, "user_id": USER, "thread_id": THREAD,
            "channel": "slack", "appended": True,
        }  # fmt: skip
        user_turn, _ = record_message(**named, role="user", content=question)
        reply, _ = record_message(
            **named, role="assistant", content=answer, in_reply_to=user_turn.id
        )
        short_term.append_turns(tenant.id, AGENT, USER, [Turn.of(user_turn), Turn.of(reply)])
        for message in (user_turn, reply):
            append_to_thread(tenant.id, message)
        return reply

    return exchange


def thread(tenant: Tenant) -> list[str]:
    return [turn["content"] for turn in get_thread_turns(tenant.id, THREAD, "slack")]


def held(tenant: Tenant) -> list[list[bytes]]:
    """Return the content of the cache, unchecked."""
    keys = key_of(tenant.id), session_key(tenant.id, THREAD)
    return [get_redis_connection("default").lrange(key, 0, -1) for key in keys]


def put_back(tenant: Tenant, lists: list[list[bytes]]) -> None:
    """Restore an earlier state of the cache, as if nothing had changed since."""
    cache = get_redis_connection("default")
    for key, entries in zip(
        (key_of(tenant.id), session_key(tenant.id, THREAD)), lists, strict=True
    ):
        cache.delete(key)
        if entries:
            cache.rpush(key, *entries)


def restore_before(tenant: Tenant, *messages: Message) -> None:
    """Remove clears and messages, as the restore of an older dump does."""
    with database.as_owner(), tenant_scope(tenant.id):
        server = tenant.server
        WindowClear.objects.all()._raw_delete(server)
        for message in messages:
            PendingEmbedding.objects.filter(message=message)._raw_delete(server)
            Message.objects.filter(pk=message.pk)._raw_delete(server)


@contextmanager
def rolled_back(tenant: Tenant) -> Iterator[None]:
    """Run the block in a transaction of the tenant that is rolled back."""
    with tenant_scope(tenant.id), transaction.atomic():
        yield
        transaction.set_rollback(True)


def test_rolled_back_clear_changes_no_window(
    tenant_a: Tenant, exchange: Callable[..., Message]
) -> None:
    exchange("q1", "a1")
    short_term.append_message(tenant_a.id, AGENT, USER, "user", "alone")
    before = held(tenant_a)
    with rolled_back(tenant_a):
        short_term.clear_window(tenant_a.id, AGENT, USER)
        assert held(tenant_a) == before
    assert held(tenant_a) == before
    assert contents(tenant_a.id) == ["q1", "a1", "alone"]
    exchange("q2", "a2")
    assert contents(tenant_a.id) == ["q1", "a1", "alone", "q2", "a2"]
    assert thread(tenant_a) == ["q1", "a1", "q2", "a2"]


def test_clear_is_kept_after_a_kill_between_commit_and_cache(
    tenant_a: Tenant, exchange: Callable[..., Message]
) -> None:
    short_term.append_message(tenant_a.id, AGENT, USER, "user", "alone")
    exchange("q1", "a1")
    before = held(tenant_a)
    short_term.clear_window(tenant_a.id, AGENT, USER)
    put_back(tenant_a, before)
    assert contents(tenant_a.id) == []
    assert thread(tenant_a) == []
    put_back(tenant_a, before)
    exchange("q2", "a2")
    assert contents(tenant_a.id) == ["q2", "a2"]
    assert thread(tenant_a) == ["q2", "a2"]
    put_back(tenant_a, before)
    short_term.append_message(tenant_a.id, AGENT, USER, "user", "new")
    assert contents(tenant_a.id) == ["q2", "a2", "new"]


def test_older_dump_with_a_newer_cache(
    tenant_a: Tenant, tenant_b: Tenant, exchange: Callable[..., Message]
) -> None:
    """The windows contain the messages of the dump only, and only those of this tenant."""
    for tenant in (tenant_a, tenant_b):
        exchange("q1", "a1", tenant)
        short_term.clear_window(tenant.id, AGENT, USER)
    lost = exchange("q2", "a2")
    exchange("q2", "a2", tenant_b)
    short_term.append_message(tenant_a.id, AGENT, USER, "user", "after the lost clear")
    restore_before(tenant_a, lost)
    newer = held(tenant_a)
    assert contents(tenant_a.id) == ["q1", "a1"]
    assert thread(tenant_a) == ["q1", "a1", "q2"]
    put_back(tenant_a, newer)
    exchange("q3", "a3")
    assert contents(tenant_a.id) == ["q1", "a1", "q3", "a3"]
    assert thread(tenant_a) == ["q1", "a1", "q2", "q3", "a3"]
    assert contents(tenant_b.id) == ["q2", "a2"]
    short_term.clear_window(tenant_a.id, AGENT, USER)
    assert contents(tenant_a.id) == []


@pytest.mark.slow
def test_concurrent_clears_appends_and_reads_agree_with_the_transcript(
    tenant_a: Tenant,
    tenant_b: Tenant,
    add_exchange: Callable[..., Any],
    run_concurrently: Callable[..., Any],
) -> None:
    """Two tenants with the same ids, each with writers, readers and clears."""

    def work(job: tuple[Tenant, int]) -> None:
        tenant, number = job
        for step in range(6):
            if number == 0 and step % 2:
                short_term.clear_window(tenant.id, AGENT, USER)
            add_exchange(tenant.id, f"q{number}.{step}", f"{tenant.slug} {number}.{step}")
            contents(tenant.id)

    run_concurrently(
        work, [(tenant, number) for tenant in (tenant_a, tenant_b) for number in range(4)]
    )
    for tenant in (tenant_a, tenant_b):
        add_exchange(tenant.id, "last", f"{tenant.slug} last")
        live = contents(tenant.id)
        short_term.delete_window(tenant.id, AGENT, USER)
        assert sorted(live) == sorted(contents(tenant.id))
        assert {text.split()[0] for text in live if " " in text} == {tenant.slug}
