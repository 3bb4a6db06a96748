"""Leases: one worker runs a job, and a worker with a lost lease writes nothing."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any
from unittest.mock import Mock
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError, ProgrammingError, connections

from tenants.context import connection, public_scope, tenant_scope
from tenants.jobs import JobKind, Lease, LeaseLost, Outcome, WorkerLost, lease, worker
from tenants.models import Job, Tenant
from tenants.servers import servers
from tests import database
from tests.jobs import claimed, expire_leases

pytestmark = pytest.mark.django_db(transaction=True)
KIND = JobKind("leased-in-tests", task="", queue="", max_attempts=3)
LANE = uuid4()


def put(tenant: Tenant, count: int = 1) -> list[UUID]:
    keys = [uuid4() for _ in range(count)]
    with tenant_scope(tenant.id):
        KIND.enqueue_many(keys)
    return keys


def in_other_threads(count: int, function: Any) -> list[Any]:
    def run(_: int) -> Any:
        try:
            return function()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A worker process that renews its leases only on request."""
    started = worker._Process()
    monkeypatch.setattr(worker, "_process", started)
    worker.renew()
    yield started
    worker.give_back_all()


def expire(process: Any) -> None:
    with database.as_owner(), public_scope(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE public.tenants_worker SET expires_at = now() - interval '1 second'"
            " WHERE id = %s",
            [process.id],
        )
        assert cursor.rowcount == 1


def test_one_of_many_workers_gets_the_lease(tenant_a: Tenant) -> None:
    (key,) = put(tenant_a)

    def begin() -> bool:
        with tenant_scope(tenant_a.id):
            return KIND.begin(key) is not None

    assert sum(in_other_threads(8, begin)) == 1
    with tenant_scope(tenant_a.id):
        assert Job.objects.get(key=key).attempts == 1


def test_one_job_of_a_lane_is_leased_at_a_time(tenant_a: Tenant, tenant_b: Tenant) -> None:
    keys, others = put(tenant_a, 8), put(tenant_b)
    left = list(keys)

    def begin() -> bool:
        with tenant_scope(tenant_a.id):
            return KIND.begin(left.pop(), LANE) is not None

    assert sum(in_other_threads(8, begin)) == 1
    with tenant_scope(tenant_b.id):
        assert KIND.begin(others[0], LANE) is not None
    with tenant_scope(tenant_a.id):
        (leased,) = Job.objects.filter(lane=LANE)
        (free, *_) = set(keys) - {leased.key}
        assert KIND.begin(free, LANE) is None
        # A hanging worker loses its lane with its lease.
        expire_leases()
        assert KIND.begin(free, LANE) is not None
        assert KIND.begin(leased.key, LANE) is None


def test_lost_lease_prevents_writes(tenant_a: Tenant) -> None:
    (key,) = put(tenant_a)
    with tenant_scope(tenant_a.id):
        late = KIND.begin(key)
        assert late is not None
        expire_leases()
        current = KIND.begin(key)
        assert current is not None
        assert current.token > late.token
        for write in (late.check, late.finish):
            with pytest.raises(LeaseLost):
                write()
        with pytest.raises(LeaseLost), late.transaction():
            raise AssertionError("it was begun")
        late.abandon()
        current.finish()
        assert not Job.objects.exists()
        with pytest.raises(LeaseLost):
            current.check()


def test_an_error_ends_the_lease_and_the_attempt_counts(tenant_a: Tenant) -> None:
    (key,) = put(tenant_a)
    with tenant_scope(tenant_a.id):
        with pytest.raises(ValueError, match="broken"), KIND.lease_job(key):
            raise ValueError("broken")
        row = Job.objects.get()
        assert (row.attempts, row.leased_until, row.begun_at is None) == (1, None, False)
        assert claimed(KIND) == [key]
        again = KIND.begin(key)
        assert again is not None
        again.refuse_lost()  # the first worker may have died for another reason
        again.abandon()
        third = KIND.begin(key)
        assert third is not None
        with pytest.raises(WorkerLost):
            third.refuse_lost()
        assert Job.objects.get().attempts == 2


def test_run_returns_the_outcome_of_the_attempt(tenant_a: Tenant) -> None:
    key, other = put(tenant_a, 2)

    def fail(held: Lease) -> None:
        raise ValueError("broken")

    def give_up(error: Exception) -> bool:
        KIND.give_up(key, code="", reason="own words")
        return True

    with tenant_scope(tenant_a.id):
        assert KIND.run(key, fail, lane=LANE) is Outcome.FAILED
        job = KIND.jobs([key]).get()
        assert (job.attempts, job.begun_at, job.leased_until) == (1, None, None)
        assert "ValueError" in job.last_error
        assert KIND.run(key, fail, on_failure=give_up) is Outcome.GIVEN_UP
        assert KIND.jobs([key]).get().last_error == "own words"
        assert KIND.run(key, fail) is None
        assert KIND.run(other, lambda held: held.finish()) is Outcome.DONE
        assert KIND.run(other, fail) is None


def test_a_process_that_renews_keeps_its_leases(tenant_a: Tenant, process: Any) -> None:
    (key,) = put(tenant_a)
    with tenant_scope(tenant_a.id):
        assert KIND.begin(key) is not None
        assert Job.objects.get().worker == process.id
    worker.renew()
    expire(process)
    worker.renew()  # late, but no other process has ended it
    with tenant_scope(tenant_a.id):
        assert Job.objects.get().worker == process.id


def test_a_process_keeps_its_leases_when_a_renewal_failed(
    tenant_a: Tenant, process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (key,) = put(tenant_a)
    with tenant_scope(tenant_a.id):
        assert KIND.begin(key) is not None
    before = process.id
    with monkeypatch.context() as patch:
        patch.setattr(worker, "server_scope", Mock(side_effect=OperationalError("lost")))
        worker.renew()
    assert process.known == set()
    expire(process)
    worker.renew()
    assert (process.id, process.known) == (before, set(servers()))
    with tenant_scope(tenant_a.id):
        assert Job.objects.get().worker == before


def test_jobs_of_a_process_that_expired_are_due_at_once(
    tenant_a: Tenant, tenant_b: Tenant, process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = {}
    for tenant in (tenant_a, tenant_b):
        (key,) = put(tenant)
        with tenant_scope(tenant.id):
            late[key] = KIND.begin(key, LANE)
    assert claimed(KIND) == []
    expire(process)
    other = worker._Process()
    with monkeypatch.context() as patch:
        patch.setattr(worker, "_process", other)
        worker.renew()  # a process ends the leases of others from its second turn on
        assert claimed(KIND) == []
        worker.renew()
        assert set(claimed(KIND)) == set(late)
        worker.give_back_all()
    # The process continues, finds its leases expired, and starts again.
    was = process.id
    worker.renew()
    assert process.id != was
    with tenant_scope(tenant_a.id):
        row = Job.objects.get()
        assert (row.worker, row.lane, row.leased_until) == (None, None, None)
        with pytest.raises(LeaseLost):
            late[row.key].check()


def test_a_process_that_stops_gives_its_attempts_back(tenant_a: Tenant, process: Any) -> None:
    begun, waiting = put(tenant_a, 2)
    with tenant_scope(tenant_a.id):
        held = KIND.begin(begun)
        assert held is not None
        assert KIND.begin(waiting) is not None
        KIND.record_failure(waiting, ValueError("no"))
    assert worker.give_back_all() == 1
    with tenant_scope(tenant_a.id):
        row = Job.objects.get(key=begun)
        assert (row.attempts, row.begun_at, row.worker) == (0, None, None)
        assert Job.objects.get(key=waiting).attempts == 1
        with pytest.raises(LeaseLost):
            held.finish()


def test_no_tenant_reaches_workers_and_other_tenants_leases(
    tenant_a: Tenant, tenant_b: Tenant, process: Any
) -> None:
    (key,) = put(tenant_a)
    with tenant_scope(tenant_a.id):
        assert KIND.begin(key) is not None
    with tenant_scope(tenant_b.id), connection.cursor() as cursor:
        for call in ("renew_worker(%s, interval '-1 hour', false)", "give_back_jobs(%s)"):
            cursor.execute(f"SELECT public.{call}", [process.id])
            assert not cursor.fetchone()[0]
        cursor.execute("SELECT public.return_expired_jobs()")
        assert cursor.fetchone() == (0,)
        cursor.execute("UPDATE tenants_job SET leased_until = NULL, worker = NULL")
        assert cursor.rowcount == 0
        with pytest.raises(ProgrammingError, match="permission denied"):
            cursor.execute("SELECT * FROM public.tenants_worker")
    with public_scope(), connection.cursor() as cursor:
        with pytest.raises(ProgrammingError, match="permission denied"):
            cursor.execute("DELETE FROM public.tenants_worker")
        cursor.execute("UPDATE tenants_job SET leased_until = NULL, worker = NULL")
        assert cursor.rowcount == 0
    with tenant_scope(tenant_a.id):
        assert Job.objects.get().worker == process.id


def test_every_abandoned_lease_is_ended_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = {"tenant_id": uuid4(), "key": 1}, {"tenant_id": uuid4(), "key": 2}
    ended = []

    def end(values: dict[str, Any]) -> None:
        if not ended:
            lease._abandoned.append(second)  # another thread fails at the same time
        ended.append(values)

    monkeypatch.setattr(lease, "_abandoned", [first])
    monkeypatch.setattr(lease, "_abandon", end)
    monkeypatch.setattr(lease, "tenant_scope", lambda _: nullcontext())
    lease.end_abandoned()
    assert ended == [first, second]
