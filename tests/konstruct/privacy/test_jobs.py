"""Jobs of the owner worker for tenants are in the outbox, and are claimed there."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from konstruct.management.commands import owner_worker
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.privacy import jobs
from konstruct.privacy.erasure import erasing
from tenants.audit.access_log import Actor
from tenants.audit.models import TENANT_JOB_KEY, ActorKind, ErasureRequest, RetentionRule
from tenants.context import public_scope, tenant_scope
from tenants.models import Job, Tenant
from tenants.postgres_tools import ERASURE, owner_lock
from tests import database
from tests.database import as_owner

pytestmark = pytest.mark.django_db(transaction=True)

EVA = Actor(ActorKind.PERSON, "1", "eva")


def waiting(tenant: Tenant) -> list[str]:
    with tenant_scope(tenant.id):
        return sorted(Job.objects.values_list("kind", flat=True))


def test_idle_check_is_one_statement_for_all_tenants() -> None:
    with as_owner(), public_scope(), CaptureQueriesContext(connections["default"]) as statements:
        assert [job.run_due() for job in jobs.JOBS] == [0] * len(jobs.JOBS)
    sent = [query["sql"] for query in statements if query["sql"] not in ("BEGIN", "COMMIT")]
    assert len(sent) == len(jobs.JOBS)


def test_requested_job_is_kept_until_done(tenant_a: Tenant, tenant_b: Tenant) -> None:
    for tenant in (tenant_a, tenant_b):
        with tenant_scope(tenant.id):
            request_erasure("maria", by=EVA)
        assert waiting(tenant) == ["erasure"]
    with as_owner():
        assert jobs.ERASE.run_due() == 2
    assert waiting(tenant_a) == waiting(tenant_b) == []
    with tenant_scope(tenant_b.id):
        assert ErasureRequest.objects.get().done_at is not None


def test_a_suspended_tenants_people_are_erased_too(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id):
        request_erasure("maria", by=EVA)
    with as_owner():
        Tenant.objects.filter(pk=tenant_a.pk).update(state=Tenant.State.SUSPENDED)
        assert jobs.ERASE.run_due() == 1


def test_failed_job_stores_the_error_and_is_retried_later(
    tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tenant_scope(tenant_a.id):
        request = request_erasure("maria", by=EVA)

    def broken(*arguments: Any) -> None:
        raise erasing.NotErased("they go on talking")

    with as_owner(), monkeypatch.context() as patch:
        patch.setattr(erasing, "carry_out", broken)
        assert jobs.ERASE.run_due() == 0
        assert jobs.ERASE.run_due() == 0
    with tenant_scope(tenant_a.id):
        request.refresh_from_db()
        entry = Job.objects.get()
    assert request.last_error == "they go on talking"
    assert (entry.attempts, entry.failed_at) == (1, None)
    assert entry.due_at - entry.created_at >= timedelta(seconds=10)


def test_job_of_another_process_is_skipped(
    tenant_a: Tenant, caplog: pytest.LogCaptureFixture
) -> None:
    with tenant_scope(tenant_a.id):
        request = request_erasure("maria", by=EVA)
    begun, let_go = threading.Event(), threading.Event()

    def other() -> None:
        with (
            database.as_owner(),
            tenant_scope(tenant_a.id),
            owner_lock(ERASURE, request.pk),
        ):
            begun.set()
            let_go.wait(60)
        connections.close_all()

    thread = threading.Thread(target=other)
    thread.start()
    try:
        assert begun.wait(60)
        with as_owner():
            assert jobs.ERASE.run_due() == 0
    finally:
        let_go.set()
        thread.join()
    with tenant_scope(tenant_a.id):
        request.refresh_from_db()
        assert (request.last_error, Job.objects.get().attempts) == ("", 0)
    assert caplog.records == []


def test_retention_rules_are_applied_repeatedly(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id):
        RetentionRule.objects.create(days=10)
        RetentionRule.objects.update(days=20)
    with as_owner():
        assert jobs.RETAIN.run_due() == 0
    with tenant_scope(tenant_a.id):
        entry = Job.objects.get(kind="retention", key=TENANT_JOB_KEY)
        assert timedelta(minutes=50) < entry.due_at - entry.created_at
        Job.objects.update(sweep_at="2026-01-01T00:00Z")
    with as_owner(), tenant_scope(tenant_a.id):
        RetentionRule.objects.all().delete()
    with as_owner():
        assert jobs.RETAIN.run_due() == 1
    assert waiting(tenant_a) == []


def test_each_kind_has_a_thread_and_erasures_have_two() -> None:
    assert [owner_worker.LOOPS.count(job.run_due) for job in jobs.JOBS] == [1, 2, 1, 1, 1]
