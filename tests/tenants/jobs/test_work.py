"""Threads of a process claim job after job, and tenants share its slots."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connections

from tenants import jobs
from tenants.context import tenant_scope
from tenants.limits.fair_shares import FairShares
from tenants.models import Tenant
from tests.konstruct.running import eventually

FEW_SLOTS = 5

begun: list[UUID] = []
done: list[UUID] = []
released = threading.Event()


def wait(lease: jobs.Lease) -> None:
    """Block until the test continues it."""
    begun.append(lease.tenant_id)
    assert released.wait(60)
    done.append(lease.tenant_id)
    lease.finish()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> Iterator[jobs.JobKind]:
    """A kind of job that waits for `released`, in a process with a few slots."""
    monkeypatch.setattr(jobs, "KINDS", {})
    monkeypatch.setattr(jobs, "_last", {})
    monkeypatch.setattr(jobs.JobKind, "wake", lambda *_, **__: None)
    jobs.slots.cache_clear()
    jobs.slots("waits").shares = FairShares(FEW_SLOTS, 1)
    begun.clear()
    done.clear()
    released.clear()
    yield jobs.JobKind("wait", do=wait, queue="waits", time_limit=timedelta(minutes=1))
    released.set()
    jobs.slots.cache_clear()


def put(kind: jobs.JobKind, tenant: Tenant, count: int) -> None:
    with tenant_scope(tenant.id):
        kind.enqueue_many([uuid4() for _ in range(count)])


def work_in_thread(is_swept: bool = False) -> threading.Thread:
    def run() -> None:
        jobs.work(jobs.KINDS["wait"], is_swept=is_swept)
        connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def finish(threads: list[threading.Thread]) -> None:
    released.set()
    for thread in threads:
        thread.join()


def test_the_slots_of_a_queue_are_created_once(
    waits: jobs.JobKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = []

    def create(queue: str) -> object:
        created.append(queue)
        time.sleep(0.01)
        return object()

    monkeypatch.setattr(jobs, "Slots", create)
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(jobs.slots, ["a queue"] * 8))) == 1
    assert created == ["a queue"]


def test_a_tenant_with_much_leaves_slots_to_another(
    waits: jobs.JobKind, tenant_a: Tenant, tenant_b: Tenant
) -> None:
    put(waits, tenant_a, 20)
    threads = [work_in_thread() for _ in range(FEW_SLOTS)]
    eventually(lambda: sum(thread.is_alive() for thread in threads) == 2)
    assert begun == [tenant_a.id] * 2
    put(waits, tenant_b, 1)
    threads.append(work_in_thread())
    eventually(lambda: len(begun) == 3)
    assert begun[2] == tenant_b.id
    finish(threads)
    # The remaining threads ran all other jobs.
    assert Counter(done) == {tenant_a.id: 20, tenant_b.id: 1}
    assert jobs.slots("waits").shares.in_flight() == 0


def test_a_worker_gives_way_to_others_after_the_time_of_a_task(
    waits: jobs.JobKind, tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    woken: list[str] = []
    monkeypatch.setattr(jobs.JobKind, "wake", lambda kind, server: woken.append(server))
    settings.TASK_TIME_LIMIT = 0
    released.set()
    put(waits, tenant_a, 2)
    jobs.work(jobs.KINDS["wait"])
    assert (woken, len(done)) == (["default"], 1)


def test_stopping_process_claims_no_job(
    waits: jobs.JobKind, tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_is_stopping", threading.Event())
    put(waits, tenant_a, 1)
    jobs.stop_claiming()
    jobs.work(jobs.KINDS["wait"])
    assert begun == []
