"""Migrating many tenants: canaries first, and with locked, broken or lost tenants."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tenants.models import Tenant
from tenants.schemas import migrating, provisioning
from tests import database
from tests.tenants.schemas.test_migrate import break_schema, forget_migration, migrate

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]


@pytest.fixture(autouse=True)
def _as_owner(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(migrating, "RETRY_PAUSES_SECONDS", (0, 0))
    with database.as_owner():
        yield
        # The shared tenants are unchanged.
        migrating.RETRY_PAUSES_SECONDS = ()
        migrate(tenant=True)


@pytest.fixture
def behind() -> dict[str, Tenant]:
    """Three tenants by slug, each of which lacks a migration."""
    tenants = {}
    for slug in ("one", "three", "two"):
        tenants[slug] = provisioning.create_tenant(slug=slug)
        forget_migration(tenants[slug])
    return tenants


@contextmanager
def locked(tenant: Tenant) -> Iterator[None]:
    """Lock a table by a long read of the application."""
    with psycopg.connect(database.url_of("owner")) as other:
        other.execute(f"SELECT count(*) FROM {tenant.schema_name}.auth_user")
        yield


def status(failure: object) -> int | None:
    return getattr(failure, "returncode", None)


def lacking() -> set[str]:
    return set(Tenant.objects.filter(migrated_to="").values_list("slug", flat=True))


def test_the_broken_the_locked_and_the_lost_are_named_and_the_others_migrated(
    behind: dict[str, Tenant],
) -> None:
    break_schema(behind["one"])
    lost = provisioning.create_tenant(slug="lost")
    database.execute(f"DROP SCHEMA {lost.schema_name} CASCADE")
    with locked(behind["two"]):
        out, err, failure = migrate(lock_timeout=0.1)
    assert out[1] == "2 tenants  up to date"
    assert ["three  1 applied" in line for line in out[2:]] == [True]
    lines = {line.split()[1]: line for line in err}
    assert lines["one"].endswith('.django_session" does not exist')
    assert lines["lost"].endswith("does not exist; restore it from a backup")
    assert "its tables are locked by another session (pg_locks); wait for its" in lines["two"]
    assert str(failure).startswith("3 of 6 tenants not migrated: lost, one, two.")
    assert status(failure) == 4
    assert lacking() == {"one", "two"}
    assert database.execute(
        "SELECT count(*) FROM pg_locks JOIN pg_database AS d ON d.oid = database"
        " WHERE locktype = 'advisory' AND datname = current_database()"
    ) == [(0,)]
    assert "locked by another" in Tenant.objects.get(slug="two").provisioning_error
    migrate()
    assert lacking() == {"one"}


def test_if_a_canary_fails_no_other_is_begun(behind: dict[str, Tenant]) -> None:
    break_schema(behind["one"])
    _, err, failure = migrate(canary=1)
    assert [line.split()[1] for line in err] == ["one"]
    assert str(failure).endswith("2 were not begun, because of a failed --canary.")
    assert (status(failure), lacking()) == (4, {"one", "two", "three"})


def test_the_others_follow_a_canary(behind: dict[str, Tenant]) -> None:
    out, err, failure = migrate(canary=1)
    assert out[2].split()[1] == "one"
    assert (err, failure, lacking()) == ([], None, set())


def test_plan_lists_missing_migrations_and_changes_nothing(behind: dict[str, Tenant]) -> None:
    out, err, failure = migrate(plan=True)
    assert "2 tenants  up to date" in out
    assert sorted(line.split()[1] for line in out if line.startswith("[")) == [
        "one",
        "three",
        "two",
    ]
    assert out.count("isolation.0001_initial") == 3
    assert (err, failure, lacking()) == ([], None, {"one", "two", "three"})


def test_killed_process_does_not_end_others(
    behind: dict[str, Tenant], monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = migrating._apply

    def die(schema_name: str, *others: Any) -> Any:
        if schema_name == behind["one"].schema_name:
            migrating.os._exit(9)
        return apply(schema_name, *others)

    monkeypatch.setattr(migrating, "MIN_POOLED_SCHEMAS", 0)
    monkeypatch.setattr(migrating, "_apply", die)
    _, err, failure = migrate(parallel=2)
    (line,) = err
    assert line.split()[1] == "one"
    assert "was killed" in line
    assert lacking() == {"one"}
    assert status(failure) == 4
