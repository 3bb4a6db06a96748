"""Locks of threads: one holder at a time; many are waited for without holding others up."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from konstruct.orchestrator import messages
from konstruct.orchestrator.messages import Thread
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tests import database


def thread(tenant: Tenant, thread_id: str) -> Thread:
    return Thread(tenant.id, "maria", thread_id)


@contextmanager
def worker(tenant: Tenant, *threads: Thread) -> Iterator[Callable[[], None]]:
    """Another process that answers in these threads, until it is ended."""
    with tenant_scope(tenant.id):
        keys = [messages._key("konstruct.thread", each, each.thread_id) for each in threads]
    with psycopg.connect(database.url_of("app", tenant.server)) as other:
        other.execute(f"SET LOCAL app.current_tenant = '{tenant.id}'")
        for key in keys:
            taken = other.execute("SELECT public.try_tenant_lock(%s)", [key]).fetchone()
            assert taken == (True,)
        yield other.rollback


@pytest.mark.django_db
@pytest.mark.parametrize("at_once", [2, 1000])
def test_all_who_answer_are_waited_for_and_nobody_else(
    tenant_a: Tenant, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "ASKED_FOR_AT_ONCE", at_once)
    threads = [thread(tenant_a, f"t{number}") for number in range(5)]
    other = thread(tenant_a, "another")
    ended = []
    with worker(tenant_a, threads[1], threads[4]) as end, worker(tenant_a, other):

        def end_soon() -> None:
            ended.append(True)
            end()

        with tenant_scope(tenant_a.id):
            messages.wait_for_threads([threads[0], threads[2]])
            assert not ended
            ending = threading.Timer(0.3, end_soon)
            ending.start()
            messages.wait_for_threads(threads)
        assert ended
        ending.join()
        # None of them is held on to.
        with worker(tenant_a, *threads):
            pass


@pytest.mark.django_db
def test_a_thread_is_held_by_one_alone_and_not_by_another_tenant(
    tenant_a: Tenant, tenant_b: Tenant
) -> None:
    mine = thread(tenant_a, "t")
    with worker(tenant_a, mine) as end, tenant_scope(tenant_a.id):
        with messages.thread_lock(mine) as ours:
            assert not ours
        end()
        with messages.thread_lock(mine) as ours, worker(tenant_b, mine):
            assert ours


@pytest.mark.django_db
def test_a_lock_inside_of_another_is_given_back_first(tenant_a: Tenant) -> None:
    first, second = thread(tenant_a, "one"), thread(tenant_a, "two")
    with tenant_scope(tenant_a.id), messages.thread_lock(first):
        for _ in range(2):
            with messages.thread_lock(second) as ours:
                assert ours
            with worker(tenant_a, second):
                pass
        with pytest.raises(AssertionError), worker(tenant_a, first):
            pass


@pytest.mark.django_db
def test_a_lock_is_taken_after_its_connection_was_cut_off(tenant_a: Tenant) -> None:
    mine = thread(tenant_a, "t")
    with tenant_scope(tenant_a.id):
        with messages.thread_lock(mine):
            pass
        connection.lock_holder().connection.pgconn.finish()
        with messages.thread_lock(mine) as ours:
            assert ours
