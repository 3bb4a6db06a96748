"""Health."""

import threading
from typing import Any

import pytest
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django_redis.exceptions import ConnectionInterrupted
from kombu.exceptions import OperationalError

from konstruct.api import health
from memory.embedding import embedder
from memory.embedding.embedder import get_embedder
from memory.exceptions import EmbeddingModelError
from tenants.context import tenant_connection, tenant_scope
from tenants.models import Tenant
from tests.konstruct.running import eventually

ALL_IS_WELL = dict.fromkeys(("database", "cache", "broker", "model", "migrations"), "ok")


@pytest.fixture(autouse=True)
def _nothing_is_known_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_up_to_date", threading.Event())


@pytest.fixture(autouse=True)
def _model_is_loaded() -> None:
    get_embedder()


def get(path: str, **headers: str) -> Any:
    return Client(headers={"Host": "localhost", **headers}).get(path)


def refuse(error: Exception) -> Any:
    def fail(*args: Any, **options: Any) -> None:
        raise error

    return fail


def test_live_asks_nothing_of_the_database(db: None, django_assert_num_queries: Any) -> None:
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
        {"status": "ok", "checks": ALL_IS_WELL},
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
        ("app.connection_for_write", OperationalError("no"), "broker", "unreachable"),
        ("model_version", EmbeddingModelError("no"), "model", "missing"),
    ],
)
def test_not_ready_says_what_is_missing(
    transactional_db: None,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    error: Exception,
    name: str,
    words: str,
) -> None:
    monkeypatch.setattr(f"konstruct.api.health.{target}", refuse(error))
    response = get("/health/ready")
    assert response.status_code == 503
    assert response.json() == {"status": "unavailable", "checks": ALL_IS_WELL | {name: words}}


def test_a_schema_that_is_behind_is_not_ready(
    transactional_db: None, tenant_a: Tenant, as_owner: Any
) -> None:
    with as_owner(), tenant_scope(tenant_a.id):
        recorder = MigrationRecorder(tenant_connection())
        recorder.record_unapplied("memory", "0001_initial")
    try:
        response = get("/health/ready")
        assert (response.status_code, response.json()["checks"]["migrations"]) == (
            503,
            "1 tenants are behind: run manage.py migrate",
        )
    finally:
        with as_owner(), tenant_scope(tenant_a.id):
            MigrationRecorder(tenant_connection()).record_applied("memory", "0001_initial")
    assert get("/health/ready").status_code == 200


def test_a_process_is_not_ready_before_its_model_is_loaded(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(embedder, "_embedder", None)
    response = get("/health/ready")
    assert (response.status_code, response.json()["checks"]) == (
        503,
        ALL_IS_WELL | {"model": "loading"},
    )
    assert caplog.records == []
    eventually(lambda: get("/health/ready").status_code == 200)
    assert embedder.is_loaded()


def test_migrations_are_asked_for_once(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert get("/health/ready").status_code == 200
    monkeypatch.setattr(health, "_applied", refuse(AssertionError("asked again")))
    assert get("/health/ready").status_code == 200
