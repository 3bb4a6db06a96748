"""Checks of a deployment: each fault is made in the tests' servers, and undone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core import checks
from django.db import connections

from konstruct.checks import check_hosts, check_stores
from konstruct.heartbeats import BEAT, OWNER, QUEUES, write_heartbeat
from tenants.checks import system
from tenants.models import Tenant
from tests import database
from tests.konstruct.running import forget_heartbeats
from tests.servers.valkey import free_port, own_valkey

SECRET = "s3cret-of-the-test"
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.of_one_server(reason="it makes faults of the main server"),
]


@pytest.fixture
def heartbeats(transactional_db: None) -> Iterator[None]:
    """A heartbeat of each process. They are removed with the settings of the tests."""
    for process in (*QUEUES, BEAT, OWNER):
        write_heartbeat(process)
    yield
    forget_heartbeats()


@pytest.fixture(autouse=True)
def deployment(heartbeats: None, settings: Any, tmp_path: Path) -> None:
    """A journal of erasures."""
    settings.ERASURE_JOURNAL = str(tmp_path / "journal")
    Path(settings.ERASURE_JOURNAL).touch()


def findings() -> dict[str, str]:
    """Return the texts of our findings by their ids."""
    found = checks.run_checks(include_deployment_checks=True, databases=["default"])
    ours = [message for message in found if f"{message.id}".startswith(("konstruct.", "tenants."))]
    assert all(message.hint for message in ours)
    return {f"{message.id}": message.msg for message in ours}


@contextmanager
def altered(statement: str, back: str) -> Iterator[None]:
    """Run a statement as a superuser, and another one after the block."""
    with psycopg.connect(database.url_of("superuser"), autocommit=True) as superuser:
        superuser.execute(statement)
        try:
            yield
        finally:
            superuser.execute(back)


def test_healthy_deployment_has_no_findings(tenant_a: Tenant) -> None:
    assert findings() == {}


@pytest.mark.parametrize(
    ("table", "privileges"),
    [
        ("public.tenants_workspaceclaim", "SELECT"),
        ("{schema}.audit_retentionrule", "DELETE, INSERT, SELECT, UPDATE"),
    ],
)
def test_the_hint_restores_a_revoked_privilege(
    tenant_a: Tenant, tenant_b: Tenant, table: str, privileges: str
) -> None:
    table = table.format(schema=tenant_a.schema_name)
    grant = f"GRANT {privileges} ON {table} TO konstruct_app;"
    with altered(f"REVOKE {privileges} ON {table} FROM konstruct_app", grant):
        (missing,) = system.check_database(None, databases=["default"])
        assert missing.id == "tenants.E013"
        assert missing.msg == f"The application's role lacks {privileges} on {table}."
        assert str(missing.hint).endswith(f"run as konstruct_owner: {grant}")
        with psycopg.connect(database.url_of("owner"), autocommit=True) as owner:
            owner.execute(grant.encode())
        assert system.check_database(None, databases=["default"]) == []


@pytest.mark.parametrize(
    ("statement", "back", "expected"),
    [
        (
            "GRANT UPDATE ON {schema}.memory_windowclear TO konstruct_app",
            "REVOKE UPDATE ON {schema}.memory_windowclear FROM konstruct_app",
            {
                "tenants.E014": "The role may change an append-only table:"
                " {schema}.memory_windowclear."
            },
        ),
        (
            "ALTER EXTENSION vector SET SCHEMA public",
            "ALTER EXTENSION vector SET SCHEMA extensions",
            {
                "tenants.E009": "pgvector is in the schema public, where tenants do not find it.",
            },
        ),
        (
            "UPDATE tenants_tenant SET migrated_to = reverse(migrated_to) WHERE id = '{id}'",
            "UPDATE tenants_tenant SET migrated_to = reverse(migrated_to) WHERE id = '{id}'",
            {"tenants.E011": "1 tenants lack migrations and get 503: tenant-a."},
        ),
        (
            "UPDATE django_migrations SET name = 'x' WHERE app = 'tenants'",
            "UPDATE django_migrations SET name = '0001_initial' WHERE app = 'tenants'",
            {"tenants.E011": "The public schema lacks tenants.0001_initial."},
        ),
    ],
)
def test_fault_of_a_database_is_an_error(
    tenant_a: Tenant, statement: str, back: str, expected: dict[str, str]
) -> None:
    names = {"schema": tenant_a.schema_name, "id": tenant_a.id}
    with altered(statement.format(**names), back.format(**names)):
        found = findings()
    assert {id: text for id, text in found.items() if id in expected} == {
        id: text.format(**names) for id, text in expected.items()
    }


def test_unreachable_servers_are_errors_that_show_no_password(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setitem(connections["default"].settings_dict, "HOST", "127.0.0.1")
    monkeypatch.setitem(connections["default"].settings_dict, "PORT", str(port))
    monkeypatch.setitem(connections["default"].settings_dict, "PASSWORD", SECRET)
    settings.CELERY_BROKER_URL = location = f"redis://:{SECRET}@127.0.0.1:{port}/0"
    settings.CACHES = {
        "default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": location}
    }
    found = [*system.check_database(None, databases=["default"]), *check_stores(None)]
    assert [message.id for message in found] == [
        "tenants.E007",
        "konstruct.E005",
        "konstruct.E005",
    ]
    assert str(found[0].hint).endswith("or correct DATABASE_URL.")
    assert str(found[2].hint).endswith("or correct REDIS_URL.")
    assert SECRET not in str(found)


@pytest.mark.slow
def test_valkey_that_evicts_keys_is_a_warning(settings: Any, tmp_path: Path) -> None:
    with own_valkey(tmp_path, "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru") as (
        _,
        url,
    ):
        settings.CELERY_BROKER_URL = url
        (found,) = check_stores(None)
    assert found.id == "konstruct.W004"


def test_process_without_a_heartbeat_is_an_error() -> None:
    forget_heartbeats()
    found = [message.msg for message in check_stores(None)]
    assert len(found) == len(QUEUES) + 2
    assert found[0] == "No worker of replies has been at work for 30 seconds."
    assert found[-1] == "No owner worker has been at work for 30 seconds."


def test_refused_hosts_are_errors(settings: Any) -> None:
    settings.ALLOWED_HOSTS = [".example.com"]
    settings.PUBLIC_HOSTS = ["operators.example.com", "127.0.0.1"]
    settings.TENANT_DOMAIN_SUFFIX = "example.org"
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    found = list(check_hosts(None))
    assert [f"{message.id}"[-4:] for message in found] == ["E001", "E001", "W002"]
    assert "refuses 127.0.0.1," in found[0].msg
    assert "refuses tenant.example.org," in found[1].msg
