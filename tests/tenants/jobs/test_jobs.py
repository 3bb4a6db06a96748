"""The outbox: turns of tenants, claims and attempts of workers, and privileges."""

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from celery import shared_task
from django.conf import settings as django_settings
from django.db import DatabaseError, connections
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from konstruct.celery import app
from tenants import jobs, tasks, transaction
from tenants.context import connection, current_tenant_id, public_scope, server_scope, tenant_scope
from tenants.exceptions import KonstructError
from tenants.jobs import claims
from tenants.jobs import kind as kinds
from tenants.models import Job, Tenant
from tenants.schemas.provisioning import resume_tenant, suspend_tenant
from tenants.servers import MAIN
from tenants.serving import TenantTask
from tests import database
from tests.jobs import claimed

SECOND = timedelta(seconds=1)
done: list[tuple[Any, ...]] = []


@shared_task(base=TenantTask, name="tests.jobs.note")
def note(tenant_id: str, key: str) -> None:
    """Record the key and the current tenant."""
    done.append((tenant_id, key, str(current_tenant_id())))


class Busy(KonstructError):
    retry_after = 90.0


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> jobs.JobKind:
    """A kind of job that only records its keys."""
    monkeypatch.setattr(kinds, "KINDS", known := {})
    monkeypatch.setattr(claims, "KINDS", known)
    monkeypatch.setattr(tasks, "KINDS", known)
    monkeypatch.setattr(claims, "_last", {})
    done.clear()
    return jobs.JobKind(
        name="note",
        task=note.name,
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
            return [
                Tenant.objects.create(
                    slug=f"turn-{uuid4().hex}", name="x", state="active", server=MAIN
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


MANY = (
    "INSERT INTO tenants_job (kind, key)"
    " SELECT 'note', gen_random_uuid() FROM generate_series(1, 10000)"
)

# Some of these are tenants: such a short list is read as a whole.
FEW = 100

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


def test_a_claim_reads_no_more_of_a_tenant_that_has_much(
    transactional_db: None, notes: jobs.JobKind, tenants: list[Tenant]
) -> None:
    with tenant_scope(tenants[0].id), connection.cursor() as cursor:
        cursor.execute(MANY)
    put(notes, tenants[1])
    as_owner_outside("ANALYZE tenants_job")
    for after in (UUID(int=0), tenants[0].id, tenants[1].id):
        assert _rows_read(plan_of_claim(after)) < FEW
        assert _rows_read(plan_of_claim(after, without=[tenants[0].id])) < FEW
    as_owner_outside("TRUNCATE tenants_job")  # deleting so many rows is slow


def test_claim_skips_the_given_tenants(notes: jobs.JobKind, tenants: list[Tenant]) -> None:
    keys = {tenant.id: put(notes, tenant)[0] for tenant in tenants}
    first, second, third = sorted(keys)
    for without in ({first, second}, {first, third}, {second, third}):
        (left,) = keys.keys() - without
        claim = jobs.claim(notes, exclude=without)
        assert claim == jobs.Claim(left, keys[left])
        assert jobs.claim(notes, exclude=without) is None
        with tenant_scope(left):
            Job.objects.update(sweep_at=F("created_at"))
    assert jobs.claim(notes, exclude=keys) is None


@pytest.mark.parametrize("known", ["never", "VACUUM", "VACUUM ANALYZE"])
def test_claim_reads_few_rows_with_statistics_of_an_empty_table(
    transactional_db: None, notes: jobs.JobKind, tenants: list[Tenant], known: str
) -> None:
    """With statistics of one entry, and without any; beside entries that are not due."""
    with tenant_scope(tenants[0].id), connection.cursor() as cursor:
        cursor.execute(MANY)
        Job.objects.all().delete()
        put(notes, tenants[0])
        if known == "never":
            as_owner_outside("TRUNCATE tenants_job")
        else:
            # Postgres estimates each page as full as it is now.
            as_owner_outside(f"{known} tenants_job")
        cursor.execute(MANY)
    for tenant, when in ((tenants[1], "now() + interval '1 hour'"), (tenants[2], "NULL")):
        with tenant_scope(tenant.id), connection.cursor() as cursor:
            later = MANY.replace("(kind, key)", "(kind, key, sweep_at)")
            cursor.execute(later.replace("gen_random_uuid()", f"gen_random_uuid(), {when}"))
    for after in (UUID(int=0), *(tenant.id for tenant in tenants)):
        assert _rows_read(plan_of_claim(after)) < FEW
    as_owner_outside("TRUNCATE tenants_job")  # deleting so many rows is slow


def test_the_settings_of_a_claim_end_with_it(
    transactional_db: None, notes: jobs.JobKind, tenants: list[Tenant]
) -> None:
    put(notes, tenants[0])
    for _ in range(2):
        jobs.claim(notes)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('enable_sort'), current_setting('enable_seqscan')"
            )
            assert cursor.fetchone() == ("on", "on")


def as_owner_outside(statement: str) -> None:
    """Execute it outside of tenants and transactions."""
    with database.as_owner(), public_scope(), connection.cursor() as cursor:
        cursor.execute(statement)


def plan_of_claim(last: UUID, without: Collection[UUID] = ()) -> dict[str, Any]:
    """Claim, and return the plans; as the owner, because the application may not EXPLAIN."""
    after, before = claims._ranges(last, without)
    values: dict[str, Any] = {"kind": "note", "grace": SECOND, "longest": SECOND}
    values |= {"after": after, "before": before}
    values |= {"suspended_delay": SECOND, "states": claims.SERVED, "has_list": True, "server": MAIN}
    with database.as_owner(), public_scope(), connection.cursor() as cursor:
        connection.set_local(claims._BY_INDEXES, with_next=True)
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {claims._CLAIM}", values)
        (plan,) = cursor.fetchone()
    found: dict[str, Any] = plan[0]["Plan"]
    return found


def _rows_read(plan: dict[str, Any]) -> int:
    own = plan["Actual Rows"] * plan["Actual Loops"] + plan.get("Rows Removed by Filter", 0)
    return max([own, *(_rows_read(child) for child in plan.get("Plans", []))])


def test_delay_of_a_claimed_job_grows_with_its_age(notes: jobs.JobKind, tenant_a: Tenant) -> None:
    put(notes, tenant_a)
    for old, pause in ((1, 5), (60, 60), (3600, 300)):
        with tenant_scope(tenant_a.id):
            Job.objects.update(due_at=F("created_at") - old * SECOND, sweep_at=F("due_at"))
        before = entry_of(tenant_a).due_at
        assert len(claimed(notes)) == 1
        left = entry_of(tenant_a).sweep_at - before - old * SECOND
        assert abs(left - pause * SECOND) < 2 * SECOND


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
    expected = {(str(tenant.id), str(*put(notes, tenant)), str(tenant.id)) for tenant in tenants}
    for _ in range(4):
        tasks.work("note")
    assert len(done) == 3
    assert set(done) == expected


@pytest.mark.parametrize("count", [3, 9])
def test_sweep_is_one_statement_with_any_number_of_tenants(
    notes: jobs.JobKind, make_tenants_rows: Callable[[int], list[Tenant]], count: int
) -> None:
    for tenant in make_tenants_rows(count):
        (key,) = put(notes, tenant)
        with tenant_scope(tenant.id):
            notes.record_failure(key, ValueError("later"))
    with CaptureQueriesContext(connections[MAIN]) as queries:
        assert tasks.sweep() == 0
    assert len(queries) == 1


def test_sweep_enqueues_tasks_for_jobs_without_one(
    notes: jobs.JobKind, tenants: list[Tenant], monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[str] = []
    monkeypatch.setattr(jobs.JobKind, "wake", lambda kind, *_, **__: woken.append(kind.name))
    put(notes, tenants[0], 3)
    put(notes, tenants[1], 2)
    monkeypatch.setattr(claims, "_queue_length", lambda queue: 1)
    assert (jobs.sweep(), woken) == (4, ["note"] * 4)
    monkeypatch.setattr(claims, "_queue_length", lambda queue: 300)
    assert jobs.sweep() == 1
    monkeypatch.setattr(claims, "_queue_length", lambda queue: 0)
    monkeypatch.setattr(claims, "MAX_SWEPT_JOBS", 2)
    assert jobs.sweep() == 2


def test_an_entry_wakes_one_worker_after_its_commit(
    notes: jobs.JobKind, tenant_a: Tenant, django_capture_on_commit_callbacks: Any
) -> None:
    queue = app.pool.acquire(block=True).SimpleQueue(notes.queue)
    queue.clear()
    with django_capture_on_commit_callbacks(execute=True):
        put(notes, tenant_a)
        assert claims._queue_length(notes.queue) == 0
    assert claims._queue_length(notes.queue) == 1
    message = queue.get_nowait()
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
        assert notes.begin(key)
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
        assert notes.begin(key)
        assert notes.record_failure(key, error)
    assert entry_of(tenant_a).last_error.startswith("An error inside Konstruct")
    assert claimed(notes) == []


def test_leased_job_is_claimed_again_after_the_time_limit(
    notes: jobs.JobKind, tenant_a: Tenant
) -> None:
    (key,) = put(notes, tenant_a)
    with tenant_scope(tenant_a.id):
        assert notes.begin(key)
    age(tenant_a, sweep_at=60 * SECOND)
    assert claimed(notes) == []
    age(tenant_a, sweep_at=django_settings.TASK_TIME_LIMIT * SECOND)
    assert claimed(notes) == [key]
    with tenant_scope(tenant_a.id):
        notes.finish(key)
        assert not notes.begin(key)
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


def test_failed_jobs_are_hidden_outside_of_a_tenant(notes: jobs.JobKind, tenant_a: Tenant) -> None:
    (key,) = put(notes, tenant_a)
    with tenant_scope(tenant_a.id):
        notes.give_up(key, code="closed", reason="It is over.")
    with server_scope(tenant_a.server):
        assert not Job.objects.exists()
