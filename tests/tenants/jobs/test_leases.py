"""Leases: one worker runs a job, and a worker with a lost lease writes nothing."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any
from unittest.mock import Mock
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError, ProgrammingError, connections

from tenants import jobs
from tenants.context import connection, public_scope, tenant_scope
from tenants.models import Job, Tenant
from tenants.servers import servers
from tests import database
from tests.jobs import claimed, expire_leases

pytestmark = pytest.mark.django_db(transaction=True)
KIND = jobs.JobKind("leased-in-tests", do="", queue="", max_attempts=3)
LANE = uuid4()


def put(tenant: Tenant, count: int = 1, lane: UUID | None = None) -> list[UUID]:
    keys = [uuid4() for _ in range(count)]
    with tenant_scope(tenant.id):
        KIND.enqueue_many(keys, lane=lane)
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
    started = jobs._Process()
    monkeypatch.setattr(jobs, "_process", started)
    jobs.renew_worker()
    yield started
    jobs.give_back_all()


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
            return KIND.lease(key) is not None

    assert sum(in_other_threads(8, begin)) == 1
    with tenant_scope(tenant_a.id):
        assert Job.objects.get(key=key).attempts == 1


def test_one_job_of_a_lane_is_leased_at_a_time(tenant_a: Tenant, tenant_b: Tenant) -> None:
    keys, others = put(tenant_a, 8, LANE), put(tenant_b, lane=LANE)
    left = list(keys)

    def begin() -> bool:
        with tenant_scope(tenant_a.id):
            return KIND.lease(left.pop()) is not None

    assert sum(in_other_threads(8, begin)) == 1
    with tenant_scope(tenant_b.id):
        assert KIND.lease(others[0]) is not None
    with tenant_scope(tenant_a.id):
        (leased,) = Job.objects.filter(leased_until__isnull=False)
        (free, *_) = set(keys) - {leased.key}
        assert KIND.lease(free) is None
        # The job of a hanging worker keeps its lane until it is leased again.
        expire_leases()
        assert KIND.lease(free) is None
        again = KIND.lease(free, lane=LANE)
        assert again is not None
        assert again.key == leased.key
        again.finish()
        assert KIND.lease(free) is not None


def test_lost_lease_prevents_writes(tenant_a: Tenant) -> None:
    (key,) = put(tenant_a)
    with tenant_scope(tenant_a.id):
        late = KIND.lease(key)
        assert late is not None
        expire_leases()
        current = KIND.lease(key)
        assert current is not None
        assert current.token > late.token
        for write in (late.check, late.finish):
            with pytest.raises(jobs.LeaseLost):
                write()
        with pytest.raises(jobs.LeaseLost), late.transaction():
            raise AssertionError("it was begun")
        late.abandon()
        current.finish()
        assert not Job.objects.exists()
        with pytest.raises(jobs.LeaseLost):
            current.check()


def test_an_error_ends_the_lease_and_the_attempt_counts(tenant_a: Tenant) -> None:
    (key,) = put(tenant_a)
    with tenant_scope(tenant_a.id):
        first = KIND.lease(key)
        assert first is not None
        with pytest.raises(ValueError, match="broken"), KIND.attempt(first):
            raise ValueError("broken")
        row = Job.objects.get()
        assert (row.attempts, row.leased_until, row.begun_at is None) == (1, None, False)
        again = jobs.claim(KIND)
        assert again is not None
        assert again.key == key
        again.refuse_lost()  # the first worker may have died for another reason
        again.abandon()
        third = KIND.lease(key)
        assert third is not None
        with pytest.raises(jobs.WorkerLost):
            third.refuse_lost()
        assert Job.objects.get().attempts == 2


def test_an_interrupted_job_keeps_its_place_in_its_lane(tenant_a: Tenant, process: Any) -> None:
    (first,), _ = put(tenant_a, lane=LANE), put(tenant_a, lane=LANE)
    lease = jobs.claim(KIND)
    assert lease is not None
    with tenant_scope(tenant_a.id):
        lease.abandon()
    assert claimed(KIND) == [first]
    jobs.give_back_all()
    assert claimed(KIND) == [first]


def test_run_returns_the_outcome_of_the_attempt(tenant_a: Tenant) -> None:
    key, other = put(tenant_a, 2)

    def fail(held: jobs.Lease) -> None:
        raise ValueError("broken")

    def give_up(error: Exception) -> bool:
        KIND.give_up(key, code="", reason="own words")
        return True

    with tenant_scope(tenant_a.id):
        assert KIND.run(key, fail) is jobs.Outcome.FAILED
        job = KIND.jobs([key]).get()
        assert (job.attempts, job.begun_at, job.leased_until) == (1, None, None)
        assert "ValueError" in job.last_error
        assert KIND.run(key, fail, on_failure=give_up) is jobs.Outcome.GIVEN_UP
        assert KIND.jobs([key]).get().last_error == "own words"
        assert KIND.run(key, fail) is None
        assert KIND.run(other, lambda held: held.finish()) is jobs.Outcome.DONE
        assert KIND.run(other, fail) is None


def test_a_process_that_renews_keeps_its_leases(tenant_a: Tenant, process: Any) -> None:
    (key,) = put(tenant_a)
    with tenant_scope(tenant_a.id):
        assert KIND.lease(key) is not None
        assert Job.objects.get().worker == process.id
    jobs.renew_worker()
    expire(process)
    jobs.renew_worker()  # late, but no other process has ended it
    with tenant_scope(tenant_a.id):
        assert Job.objects.get().worker == process.id


def test_a_process_keeps_its_leases_when_a_renewal_failed(
    tenant_a: Tenant, process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (key,) = put(tenant_a)
    with tenant_scope(tenant_a.id):
        assert KIND.lease(key) is not None
    before = process.id
    with monkeypatch.context() as patch:
        patch.setattr(jobs.context, "server_scope", Mock(side_effect=OperationalError("lost")))
        jobs.renew_worker()
    assert process.known == set()
    expire(process)
    jobs.renew_worker()
    assert (process.id, process.known) == (before, set(servers()))
    with tenant_scope(tenant_a.id):
        assert Job.objects.get().worker == before


def test_jobs_of_a_process_that_expired_are_due_at_once(
    tenant_a: Tenant, tenant_b: Tenant, process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = {}
    for tenant in (tenant_a, tenant_b):
        (key,) = put(tenant, lane=LANE)
        with tenant_scope(tenant.id):
            late[key] = KIND.lease(key)
    assert claimed(KIND) == []
    expire(process)
    other = jobs._Process()
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "_process", other)
        jobs.renew_worker()  # a process ends the leases of others from its second turn on
        assert claimed(KIND) == []
        jobs.renew_worker()
        assert set(claimed(KIND)) == set(late)
        jobs.give_back_all()
    # The process continues, finds its leases expired, and starts again.
    was = process.id
    jobs.renew_worker()
    assert process.id != was
    with tenant_scope(tenant_a.id):
        row = Job.objects.get()
        assert (row.worker, row.lane, row.leased_until) == (None, LANE, None)
        with pytest.raises(jobs.LeaseLost):
            late[row.key].check()


def test_a_process_that_stops_gives_its_attempts_back(tenant_a: Tenant, process: Any) -> None:
    begun, waiting = put(tenant_a, 2)
    with tenant_scope(tenant_a.id):
        held = KIND.lease(begun)
        assert held is not None
        assert KIND.lease(waiting) is not None
        KIND.record_failure(waiting, ValueError("no"))
    assert jobs.give_back_all() == 1
    with tenant_scope(tenant_a.id):
        row = Job.objects.get(key=begun)
        assert (row.attempts, row.begun_at, row.worker) == (0, None, None)
        assert Job.objects.get(key=waiting).attempts == 1
        with pytest.raises(jobs.LeaseLost):
            held.finish()


def test_no_tenant_reaches_workers_and_other_tenants_leases(
    tenant_a: Tenant, tenant_b: Tenant, process: Any
) -> None:
    (key,) = put(tenant_a)
    with tenant_scope(tenant_a.id):
        assert KIND.lease(key) is not None
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
    first, second = (jobs.Lease(uuid4(), "reply", uuid4(), 1, False, 1, "", "") for _ in range(2))
    ended = []

    def end(lease: jobs.Lease) -> None:
        if not ended:
            jobs._abandoned.append(second)  # another thread fails at the same time
        ended.append(lease)

    monkeypatch.setattr(jobs, "_abandoned", [first])
    monkeypatch.setattr(jobs.Lease, "end", end)
    monkeypatch.setattr(jobs.context, "tenant_scope", lambda _: nullcontext())
    jobs.end_abandoned()
    assert ended == [first, second]
