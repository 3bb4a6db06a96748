"""The outbox: turns of tenants, claims and attempts of workers, and privileges."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings as django_settings
from django.db import DatabaseError
from django.db.models import F

from konstruct.celery import app
from tenants import jobs, tasks, transaction
from tenants.context import connection, current_tenant_id, public_scope, server_scope, tenant_scope
from tenants.exceptions import KonstructError
from tenants.models import Job, Tenant
from tenants.schemas.provisioning import resume_tenant, suspend_tenant
from tenants.servers import MAIN
from tests.jobs import claimed

SECOND = timedelta(seconds=1)
done: list[tuple[Any, ...]] = []


def note(lease: jobs.Lease) -> None:
    """Record the key and the current tenant."""
    done.append((lease.tenant_id, lease.key, current_tenant_id()))
    lease.finish()


class Busy(KonstructError):
    retry_after = 90.0


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> jobs.JobKind:
    """A kind of job that only records its keys."""
    monkeypatch.setattr(jobs, "KINDS", {})
    monkeypatch.setattr(jobs, "_last", {})
    done.clear()
    return jobs.JobKind(
        name="note",
        do=note,
        queue="notes",
        max_attempts=3,
        first_backoff=2.0,
        max_backoff=60.0,
        is_final=lambda error: isinstance(error, ZeroDivisionError),
    )


@pytest.fixture
def tenants(make_tenants_rows: Callable[[int], list[Tenant]]) -> list[Tenant]:
    return make_tenants_rows(3)


@pytest.fixture
def make_tenants_rows(db: None) -> Callable[[int], list[Tenant]]:
    """Create active tenants without a schema: the outbox needs none."""

    def make(count: int) -> list[Tenant]:
        with public_scope():
            migrated_to = Tenant.objects.get(slug="tenant-a").migrated_to
            return [
                Tenant.objects.create(
                    slug=f"turn-{uuid4().hex}",
                    name="x",
                    state="active",
                    server=MAIN,
                    migrated_to=migrated_to,
                )
                for _ in range(count)
            ]

    return make


def put(kind: jobs.JobKind, tenant: Tenant, count: int = 1) -> list[UUID]:
    """Enqueue the given number of jobs of the tenant, the first with the earliest due time."""
    keys = [uuid4() for _ in range(count)]
    with tenant_scope(tenant.id):
        for number, key in enumerate(keys):
            kind.enqueue(key)
            Job.objects.filter(key=key).update(sweep_at=F("sweep_at") - SECOND / (number + 1))
    return keys


def entry_of(tenant: Tenant) -> Job:
    with tenant_scope(tenant.id):
        return Job.objects.get()


def age(tenant: Tenant, **times: timedelta) -> None:
    with tenant_scope(tenant.id):
        Job.objects.update(**{name: F(name) - passed for name, passed in times.items()})


# --- Turns ----------------------------------------------------------------------------------------


def test_tenants_take_turns_with_any_number_of_jobs(
    notes: jobs.JobKind, tenants: list[Tenant]
) -> None:
    """A tenant with many jobs delays the single job of another by one task of each worker."""
    flood, *others = tenants
    many, singles = put(notes, flood, 20), [put(notes, other)[0] for other in others]
    order = claimed(notes)
    assert set(order[:3]) == {many[0], *singles}
    assert order[3:] == many[1:]
    put(notes, others[0])
    put(notes, flood, 5)
    assert {jobs.claim(notes).tenant_id for _ in range(2)} == {flood.id, others[0].id}  # type: ignore[union-attr]


def test_the_work_of_a_tenant_that_is_not_served_waits_until_it_is(
    notes: jobs.JobKind, tenants: list[Tenant]
) -> None:
    for tenant in tenants:
        put(notes, tenant, 2)
    suspend_tenant(tenants[0])
    assert len(claimed(notes)) == 4
    assert jobs.sweep() == 0
    resume_tenant(tenants[0])
    assert len(claimed(notes)) == 2


def test_suspended_and_failed_jobs_are_not_claimed(notes: jobs.JobKind, tenant_a: Tenant) -> None:
    (key,) = put(notes, tenant_a)
    with tenant_scope(tenant_a.id):
        assert notes.hold(key, "person")
    assert claimed(notes) == []
    with tenant_scope(tenant_a.id):
        assert notes.release(key)
        assert not notes.release(key)
        assert notes.hold(key, "consent", max_time=SECOND)
    age(tenant_a, sweep_at=2 * SECOND)
    assert claimed(notes) == [key]
    with tenant_scope(tenant_a.id):
        notes.give_up(key, code="closed", reason="It is over.")
    age(tenant_a, sweep_at=timedelta(hours=1))
    assert claimed(notes) == []
    with tenant_scope(tenant_a.id):
        assert notes.retry(key)
        assert not notes.retry(key)
    assert claimed(notes) == [key]


# --- Work and sweeps ------------------------------------------------------------------------------


def test_worker_runs_due_jobs_inside_their_tenant(
    notes: jobs.JobKind, tenants: list[Tenant]
) -> None:
    expected = {(tenant.id, *put(notes, tenant), tenant.id) for tenant in tenants}
    for _ in range(4):
        tasks.work("note")
    assert len(done) == 3
    assert set(done) == expected


def test_sweep_wakes_a_worker_for_a_kind_with_due_jobs(
    notes: jobs.JobKind, tenants: list[Tenant], monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[tuple[str, object]] = []
    monkeypatch.setattr(
        jobs.JobKind, "wake", lambda kind, server, *, is_swept: woken.append((kind.name, is_swept))
    )
    put(notes, tenants[0], 3)
    put(notes, tenants[1], 2)
    assert (jobs.sweep(), woken) == (1, [("note", True)])


def test_an_entry_wakes_one_worker_after_its_commit(
    notes: jobs.JobKind, tenant_a: Tenant, django_capture_on_commit_callbacks: Any
) -> None:
    queue = app.pool.acquire(block=True).SimpleQueue(notes.queue)
    queue.clear()
    with django_capture_on_commit_callbacks(execute=True):
        put(notes, tenant_a)
        with pytest.raises(queue.Empty):
            queue.get_nowait()
    message = queue.get_nowait()
    with pytest.raises(queue.Empty):
        queue.get_nowait()
    assert (message.headers["task"], message.payload[0][0]) == (jobs.WORK, "note")
    message.ack()
    queue.close()


# --- Attempts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempts", "error", "pause"),
    [(0, ValueError("x"), 2), (1, ValueError("x"), 4), (0, Busy("x"), 60)],
)
def test_failure_is_retried_later(
    notes: jobs.JobKind, tenant_a: Tenant, attempts: int, error: Exception, pause: int
) -> None:
    (key,) = put(notes, tenant_a)
    with tenant_scope(tenant_a.id):
        Job.objects.update(attempts=attempts)
        assert notes.lease(key)
        assert not notes.record_failure(key, error)
    failed = entry_of(tenant_a)
    assert (failed.attempts, failed.begun_at, failed.sweep_at) == (
        attempts + 1,
        None,
        failed.due_at,
    )
    assert abs(failed.due_at - failed.created_at - pause * SECOND) < SECOND
    assert claimed(notes) == []


@pytest.mark.parametrize(
    ("attempts", "error"),
    [(2, ValueError("x")), (0, ZeroDivisionError("x"))],
    ids=["last", "final"],
)
def test_job_that_cannot_succeed_fails(
    notes: jobs.JobKind, tenant_a: Tenant, attempts: int, error: Exception
) -> None:
    (key,) = put(notes, tenant_a)
    with tenant_scope(tenant_a.id):
        Job.objects.update(attempts=attempts)
        assert notes.lease(key)
        assert notes.record_failure(key, error)
    assert entry_of(tenant_a).last_error.startswith("An error inside Konstruct")
    assert claimed(notes) == []


def test_leased_job_is_claimed_again_after_the_time_limit(
    notes: jobs.JobKind, tenant_a: Tenant
) -> None:
    (key,) = put(notes, tenant_a)
    with tenant_scope(tenant_a.id):
        assert notes.lease(key)
    age(tenant_a, sweep_at=60 * SECOND, leased_until=60 * SECOND)
    assert claimed(notes) == []
    limit = django_settings.TASK_TIME_LIMIT * SECOND
    age(tenant_a, sweep_at=limit, leased_until=limit)
    assert claimed(notes) == [key]
    with tenant_scope(tenant_a.id):
        notes.finish(key)
        assert not notes.lease(key)
        assert not notes.record_failure(key, ValueError("late"))
        assert not Job.objects.exists()


# --- Privileges -----------------------------------------------------------------------------------


def refused(sql: str) -> bool:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)
            return not cursor.rowcount
    except DatabaseError:
        return True


def test_a_tenant_sees_and_changes_its_own_rows_alone(
    notes: jobs.JobKind, tenant_a: Tenant, tenant_b: Tenant
) -> None:
    put(notes, tenant_b)
    with tenant_scope(tenant_a.id):
        assert not Job.objects.exists()
        assert refused("UPDATE tenants_job SET sweep_at = now() + interval '1 day'")
        assert refused("DELETE FROM tenants_job")
        assert refused(
            "INSERT INTO tenants_job (tenant_id, kind, key)"
            f" VALUES ('{tenant_b.id}', 'note', gen_random_uuid())"
        )
        assert claimed(notes) != []  # the worker of the turn works in its tenant


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM tenants_job",
        "INSERT INTO tenants_job (tenant_id, kind, key)"
        " SELECT tenant_id, kind, gen_random_uuid() FROM tenants_job",
        "UPDATE tenants_job SET sweep_at = now() - interval '1 day'",
        "UPDATE tenants_job SET failed_at = now()",
        "UPDATE tenants_job SET tenant_id = gen_random_uuid(), sweep_at = 'tomorrow'",
        "UPDATE tenants_job SET key = gen_random_uuid(), sweep_at = 'tomorrow'",
        "TRUNCATE tenants_job",
    ],
)
def test_only_claims_are_possible_outside_of_a_tenant(
    notes: jobs.JobKind, tenant_a: Tenant, change: str
) -> None:
    put(notes, tenant_a)
    before = entry_of(tenant_a)
    with server_scope(tenant_a.server):
        assert Job.objects.exists()
        assert refused(change)
    assert vars(entry_of(tenant_a)).items() - {("_state", None)} >= {("sweep_at", before.sweep_at)}


def test_jobs_of_a_tenant_with_an_outdated_schema_are_not_claimed(
    notes: jobs.JobKind, tenants: list[Tenant]
) -> None:
    with public_scope():
        behind = Tenant.objects.create(
            slug="behind", name="x", state="active", server=MAIN, migrated_to="a failed migration"
        )
    for tenant in (*tenants, behind):
        put(notes, tenant)
    assert len(claimed(notes)) == len(tenants)


def test_a_job_is_finished_by_one_statement(
    notes: jobs.JobKind, tenant_a: Tenant, django_assert_num_queries: Any
) -> None:
    """Between two statements the job could be enqueued again, or leased by another worker."""
    keys = [uuid4() for _ in range(4)]
    with tenant_scope(tenant_a.id), transaction.atomic():
        notes.enqueue_many(keys)
        lease = notes.lease(keys[0])
        assert lease is not None
        with django_assert_num_queries(3):
            lease.finish()
            notes.finish(keys[1])
            notes.finish_many(keys[2:])
        assert not notes.jobs().exists()
