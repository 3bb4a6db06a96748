"""The health endpoints."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django_redis.exceptions import ConnectionInterrupted
from kombu.exceptions import OperationalError
from redis.exceptions import OutOfMemoryError

from konstruct.api import health
from konstruct.api.auth.keys import issue_key
from konstruct.heartbeats import BEAT, OWNER, QUEUES, write_heartbeat
from memory.embedding import embedder
from memory.exceptions import EmbeddingModelError
from tenants.context import tenant_connection, tenant_scope
from tenants.models import Tenant
from tenants.naming import schema_name_of
from tests.database import as_owner
from tests.konstruct.running import eventually, forget_heartbeats

CHECKS = ("database", "cache", "broker", "model", "migrations", *QUEUES, BEAT, OWNER)


@pytest.fixture(autouse=True)
def _nothing_is_known_yet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(health, "_up_to_date", threading.Event())
    monkeypatch.setattr(health, "readiness", health.Readiness())
    monkeypatch.setattr(health, "RESULT_SECONDS", 0.0)
    write_heartbeats(*QUEUES, BEAT, OWNER)
    yield
    forget_heartbeats()


@pytest.fixture(autouse=True)
def _model_is_loaded() -> None:
    embedder.get_embedder()


def all_is_well() -> dict[str, str]:
    """Return the checks of a ready process; one more with tenants on several servers."""
    names = (*CHECKS, "tenant_databases") if settings.TENANT_DATABASES else CHECKS
    return dict.fromkeys(names, "ok")


def write_heartbeats(*processes: str) -> None:
    for process in processes:
        write_heartbeat(process)


def get(path: str, **headers: str) -> Any:
    return Client(headers={"Host": "localhost", **headers}).get(path)


def assert_readiness(status: int, state: str, **checks: str) -> None:
    """Check the answer: `checks` are those that are not ok."""
    response = get("/health/ready")
    document = {"status": state, "checks": all_is_well() | checks}
    assert (response.status_code, response.json()) == (status, document)


def refuse(error: Exception) -> Any:
    def fail(*args: Any, **options: Any) -> None:
        raise error

    return fail


def test_live_sends_no_query(db: None, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        response = get("/health/live")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("host", ["localhost", "tenant-a.localhost"])
@pytest.mark.parametrize("accept", ["*/*", "text/html", "nonsense"])
def test_ready_asks_everything(
    transactional_db: None, tenant_a: Tenant, host: str, accept: str
) -> None:
    response = get("/health/ready", Host=host, Accept=accept)
    assert (response.status_code, response.json()) == (
        200,
        {"status": "ok", "checks": all_is_well()},
    )
    assert "no-store" in response.headers["Cache-Control"]


def test_ready_does_not_ask_for_a_tenant_that_never_served(
    transactional_db: None, tenant_a: Tenant
) -> None:
    Tenant.objects.create(slug="never-served", name="has no schema")
    assert get("/health/ready").json()["checks"]["migrations"] == "ok"


def test_ready_answers_to_head(transactional_db: None) -> None:
    response = Client(headers={"Host": "localhost"}).head("/health/ready")
    assert (response.status_code, response.content) == (200, b"")


@pytest.mark.parametrize(
    ("target", "error", "name", "words"),
    [
        ("get_redis_connection", ConnectionInterrupted(None), "cache", "unreachable"),
        ("get_redis_connection", OutOfMemoryError("OOM"), "cache", "not writable"),
        ("app.connection_for_write", OperationalError("no"), "broker", "unreachable"),
        ("model_version", EmbeddingModelError("no"), "model", "missing"),
    ],
)
def test_not_ready_names_the_missing_part(
    transactional_db: None,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    error: Exception,
    name: str,
    words: str,
) -> None:
    monkeypatch.setattr(f"konstruct.api.health.{target}", refuse(error))
    assert_readiness(503, "unavailable", **{name: words})


@contextmanager
def behind(*slugs: str) -> Iterator[None]:
    """Mark tenants as migrated by an earlier version during the block."""
    with as_owner():
        before = Tenant.objects.get(slug="tenant-a").migrated_to
        Tenant.objects.filter(slug__in=slugs).update(migrated_to="earlier")
    try:
        yield
    finally:
        with as_owner():
            Tenant.objects.filter(slug__in=slugs).update(migrated_to=before)


def test_tenant_with_pending_migrations_answers_with_retry_after_and_does_not_stop_others(
    transactional_db: None, tenant_a: Tenant
) -> None:
    with tenant_scope(tenant_a.id):
        _, key = issue_key(tenant_id=tenant_a.id, name="program")
    with behind("tenant-a"):
        assert get("/health/ready").status_code == 200
        refused = get("/admin/login/", Host="tenant-a.localhost")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "30")
        assert get("/admin/login/", Host="tenant-b.localhost").status_code == 200
        for host in ("localhost", "tenant-a.localhost"):
            refused = get("/api/v1/agents/", Host=host, Authorization=f"Bearer {key}")
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "30")
            assert refused.json()["type"].endswith("unavailable")
    assert get("/admin/login/", Host="tenant-a.localhost").status_code == 200


def test_a_process_that_could_serve_no_tenant_is_not_ready(transactional_db: None) -> None:
    with behind("tenant-a", "tenant-b"):
        response = get("/health/ready")
        assert (response.status_code, response.json()["checks"]["migrations"]) == (
            503,
            "all tenants are behind: run manage.py migrate",
        )
    assert get("/health/ready").status_code == 200


def test_pending_public_migration_is_not_ready(transactional_db: None) -> None:
    with as_owner():
        MigrationRecorder(tenant_connection()).record_unapplied("tenants", "0001_initial")
    try:
        assert get("/health/ready").json()["checks"]["migrations"] == (
            "behind: run manage.py migrate"
        )
    finally:
        with as_owner():
            MigrationRecorder(tenant_connection()).record_applied("tenants", "0001_initial")
    assert get("/health/ready").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("number", [3, 30])
def test_many_tenants_are_asked_for_at_once(
    transactional_db: None, tenant_a: Tenant, number: int, django_assert_num_queries: Any
) -> None:
    Tenant.objects.bulk_create(
        Tenant(
            id=(made := uuid4()),
            slug=f"of-many-{made.hex}",
            name="Many",
            schema_name=schema_name_of(made),
            state="active",
            migrated_to=tenant_a.migrated_to,
        )
        for _ in range(number)
    )
    with django_assert_num_queries(4):
        assert health._migrations() == "ok"


def test_a_process_is_not_ready_before_its_model_is_loaded(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(embedder, "_embedder", None)
    assert_readiness(503, "unavailable", model="loading")
    assert caplog.records == []
    eventually(lambda: get("/health/ready").status_code == 200)
    assert embedder.is_loaded()


def test_migrations_are_asked_for_once(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert get("/health/ready").status_code == 200
    monkeypatch.setattr(health, "missing_in_public", refuse(AssertionError("asked again")))
    assert get("/health/ready").status_code == 200


@pytest.mark.parametrize("process", [*QUEUES, BEAT, OWNER])
def test_a_process_without_a_heartbeat_degrades_and_the_web_still_serves(
    transactional_db: None, process: str, caplog: pytest.LogCaptureFixture
) -> None:
    forget_heartbeats()
    write_heartbeats(*{*QUEUES, BEAT, OWNER} - {process})
    for _ in range(2):
        assert_readiness(200, "degraded", **{process: "missing"})
    # Once, and not for each request of a load balancer.
    assert caplog.messages == [f"Readiness: {process}: missing"]


@pytest.mark.of_a_session  # a pooler refuses the startup parameter
def test_a_database_that_takes_no_writes_is_not_ready(
    transactional_db: None, caplog: pytest.LogCaptureFixture
) -> None:
    options = connections["default"].settings_dict["OPTIONS"]
    read_only = {"options": "-c default_transaction_read_only=on"}
    with mock.patch.dict(options, read_only):
        assert_readiness(503, "unavailable", database="not writable")
    assert caplog.messages == [
        "Readiness: database: NotWritable: transaction_read_only is on",
    ]


def test_unreachable_database_is_reported_without_details(
    transactional_db: None, caplog: pytest.LogCaptureFixture
) -> None:
    health._migrations()
    with mock.patch.dict(connections["default"].settings_dict, {"HOST": "/nonexistent"}):
        assert_readiness(503, "unavailable", database="unreachable")
    (line,) = caplog.records
    assert "/nonexistent" in line.getMessage()
    assert line.exc_info is None


def test_readiness_is_checked_once_per_interval_with_any_number_of_requests(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "RESULT_SECONDS", 60.0)
    looks: list[None] = []

    def database() -> str:
        looks.append(None)
        return "ok"

    monkeypatch.setattr(health, "CHECKS", {**health.CHECKS, "database": database})
    for _ in range(20):
        assert get("/health/ready").status_code == 200
    assert len(looks) == 1


def test_request_during_a_check_gets_the_previous_result(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert get("/health/ready").json()["status"] == "ok"
    with health.readiness._lock:
        forget_heartbeats()
        assert get("/health/ready").json()["status"] == "ok"
    assert get("/health/ready").json()["status"] == "degraded"
