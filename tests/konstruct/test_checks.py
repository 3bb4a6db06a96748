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
from tenants.checks import check_database
from tenants.models import Tenant
from tests import database
from tests.servers.valkey import free_port, own_valkey

SECRET = "s3cret-of-the-test"
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.of_one_server(reason="it makes faults of the main server"),
]


@pytest.fixture(autouse=True)
def deployment(settings: Any, tmp_path: Path) -> None:
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


def test_privilege_that_the_role_must_not_have_is_an_error(tenant_a: Tenant) -> None:
    table = f"{tenant_a.schema_name}.memory_windowclear"
    with altered(
        f"GRANT UPDATE ON {table} TO konstruct_app", f"REVOKE UPDATE ON {table} FROM konstruct_app"
    ):
        found = findings()
    assert found == {"tenants.E014": f"The role may change an append-only table: {table}."}


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
    found = [*check_database(None, databases=["default"]), *check_stores(None)]
    assert [message.id for message in found] == ["tenants.E007", "konstruct.E005", "konstruct.E005"]
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


def test_refused_hosts_are_errors(settings: Any) -> None:
    settings.ALLOWED_HOSTS = [".example.com"]
    settings.PUBLIC_HOSTS = ["operators.example.com", "127.0.0.1"]
    settings.TENANT_DOMAIN_SUFFIX = "example.org"
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    found = list(check_hosts(None))
    assert [f"{message.id}"[-4:] for message in found] == ["E001", "E001", "W002"]
    assert "refuses 127.0.0.1," in found[0].msg
    assert "refuses tenant.example.org," in found[1].msg
