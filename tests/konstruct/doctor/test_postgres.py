"""The doctor and Postgres: each fault is made in the tests' database, and undone."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from konstruct.doctor import postgres
from konstruct.orchestrator.models import NotificationRecipient
from tenants.context import connection, tenant_connection, tenant_scope
from tenants.models import Tenant
from tenants.servers import servers
from tests import database
from tests.konstruct.doctor.conftest import Examine, silent_server, texts_of_check
from tests.servers import pooler
from tests.servers.valkey import free_port

AsOwner = Callable[[], AbstractContextManager[None]]
pytestmark = pytest.mark.of_one_server(reason="it makes faults of the main server")


@contextmanager
def altered(statement: str, back: str) -> Iterator[None]:
    """Run a statement as a superuser, and another one after the block."""
    with psycopg.connect(database.url_of("superuser"), autocommit=True) as superuser:
        superuser.execute(statement)
        try:
            yield
        finally:
            superuser.execute(back)


def test_server_that_is_down_or_hangs_does_not_stop_other_checks(
    settings: Any, examine: Examine
) -> None:
    settings.APPLICATION_DATABASE_URL = f"postgresql://konstruct_app@127.0.0.1:{free_port()}/x"
    (down,) = examine(status="wrong")
    assert (down["subject"], down["check"]) == ("Postgres default", "connection")
    assert "Connection refused" in down["text"]
    assert down["remedy"].startswith("Start the server, or correct DATABASE_URL")
    with silent_server() as port:
        settings.APPLICATION_DATABASE_URL = f"postgresql://konstruct_app@127.0.0.1:{port}/x"
        (hangs,) = examine("--timeout=2.5", status="wrong")
    assert hangs["text"].startswith("No answer in time. Not checked: server, extension, clock,")
    assert texts_of_check(examine(status="ok"), "policies")


@pytest.mark.parametrize(
    ("privilege", "check", "text"),
    [
        ("UPDATE", "excess privileges", "The role may change an append-only table: {}.memory_"),
        ("TRUNCATE", "excess privileges", "The role may empty, refer to or watch a table: {}"),
    ],
)
def test_excessive_privilege_is_reported(
    tenant_a: Tenant, examine: Examine, privilege: str, check: str, text: str
) -> None:
    table = f"{tenant_a.schema_name}.memory_windowclear"
    with altered(
        f"GRANT {privilege} ON {table} TO konstruct_app",
        f"REVOKE {privilege} ON {table} FROM konstruct_app",
    ):
        (found,) = texts_of_check(examine(status="wrong"), check)
    assert found.startswith(text.format(tenant_a.schema_name))


@pytest.mark.parametrize(
    ("table", "privileges"),
    [
        ("public.tenants_workspaceclaim", "SELECT"),
        ("{schema}.memory_windowclear", "INSERT"),
        ("{schema}.audit_retentionrule", "DELETE, INSERT, SELECT, UPDATE"),
    ],
)
def test_revoked_privilege_is_reported(
    tenant_a: Tenant, tenant_b: Tenant, examine: Examine, table: str, privileges: str
) -> None:
    """The statement of the remedy, run by the owner, restores it."""
    table = table.format(schema=tenant_a.schema_name)
    grant = f"GRANT {privileges} ON {table} TO konstruct_app;"
    with altered(f"REVOKE {privileges} ON {table} FROM konstruct_app", grant):
        found = {answer["check"]: answer for answer in examine(status="wrong")}
        missing = found.pop("missing privileges")
        if table.endswith("claim"):
            slack = found.pop("slack")
            assert "permission denied for table tenants_workspaceclaim" in slack["text"]
            assert (
                slack["remedy"] == "Grant the privileges that the check 'missing privileges' names."
            )
        assert set(found) <= {"processes"}  # on a busy machine
        assert missing["text"] == f"The application's role lacks {privileges} on {table}."
        assert missing["remedy"].endswith(f"run as konstruct_owner: {grant}")
        with psycopg.connect(database.url_of("owner"), autocommit=True) as owner:
            owner.execute(grant.encode())
        assert texts_of_check(examine(status="wrong"), "missing privileges") == []


def test_table_without_a_policy_is_reported(tenant_a: Tenant, examine: Examine) -> None:
    table = f"{tenant_a.schema_name}.memory_windowclear"
    with altered(
        f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
    ):
        assert texts_of_check(examine(status="wrong"), "isolation") == [
            "1 schemas of tenants have a relation that is not protected, among them"
            f" {tenant_a.schema_name}."
        ]


def test_owner_role_of_the_application_is_reported(settings: Any, examine: Examine) -> None:
    settings.APPLICATION_DATABASE_URL = settings.OWNER_DATABASE_URL
    (found,) = texts_of_check(examine(status="wrong"), "isolation")
    assert found.startswith("Row-level security does not bind this process: konstruct_owner owns")


@pytest.mark.slow
@pytest.mark.skipif(pooler.EXECUTABLE is None, reason="there is no PgBouncer")
@pytest.mark.parametrize("mode", ["transaction", "session", "statement"])
def test_pooler_is_reported_by_its_mode(settings: Any, examine: Examine, mode: str) -> None:
    name = database.url_of("owner").partition("?")[0].rpartition("/")[2]
    with pooler.pooler(mode=mode) as url, pooler.pooler(role="owner") as owners:
        settings.APPLICATION_DATABASE_URL = f"{url}/{name}"
        settings.OWNER_DATABASE_URL = f"{owners}/{name}"
        answers = examine(status="wrong" if mode == "statement" else "ok")
        behind = texts_of_check(examine(status="wrong"), "owner")
    text = " ".join(texts_of_check(answers, "isolation"))
    if mode != "statement":
        assert "by a pooler, of which SQL does not show pool_mode" in text
        assert behind == [
            "The owner connects through a pooler, behind which migrate refuses to run."
        ]
    else:
        assert "Tenants could meet behind the connection pooler: " in text


def test_extension_outside_of_the_search_path_is_reported(examine: Examine) -> None:
    with altered(
        "ALTER EXTENSION vector SET SCHEMA public", "ALTER EXTENSION vector SET SCHEMA extensions"
    ):
        assert texts_of_check(examine(status="wrong"), "extension") == [
            "pgvector is in the schema public, where tenants do not find it."
        ]


def test_database_without_the_extension_is_reported(settings: Any, examine: Examine) -> None:
    place, _, query = database.url_of("superuser").partition("?")
    settings.APPLICATION_DATABASE_URL = f"{place.rpartition('/')[0]}/postgres?{query}"
    assert texts_of_check(examine(), "extension") == ["The database has no extension vector."]


def test_missing_or_old_backups_are_reported(
    settings: Any, tenant_a: Tenant, as_owner: AsOwner, examine: Examine
) -> None:
    def back_up(**tenants: datetime | None) -> None:
        with as_owner():
            for slug, moment in tenants.items():
                slug = slug.replace("_", "-")
                Tenant.objects.filter(slug=slug).update(backed_up_at=moment)

    settings.ERASURE_JOURNAL = None
    without_journal = (
        "ERASURE_JOURNAL is not set: a restored backup brings back people who were erased since"
        " then."
    )
    try:
        back_up(tenant_a=None, tenant_b=None)
        assert texts_of_check(examine(), "backups") == ["No backup is recorded.", without_journal]
        now = timezone.now()
        back_up(tenant_a=now - timedelta(hours=27), tenant_b=now - timedelta(hours=25))
        old = "1 tenants have no backup of the last 26 hours: tenant-a."
        assert texts_of_check(examine(status="warning"), "backups") == [old, without_journal]
        back_up(tenant_a=now)
        last = f"Each tenant has a backup; the last one is of {now:%Y-%m-%d %H:%M} UTC."
        assert texts_of_check(examine(status="ok"), "backups") == [last]
    finally:
        back_up(tenant_a=None, tenant_b=None)


def test_tenant_with_pending_migrations_is_reported(
    tenant_a: Tenant, as_owner: AsOwner, examine: Examine
) -> None:
    before = tenant_a.migrated_to
    with as_owner():
        Tenant.objects.filter(pk=tenant_a.pk).update(migrated_to="earlier")
    try:
        assert texts_of_check(examine(status="wrong"), "tenants") == [
            "1 tenants lack migrations and get 503: tenant-a."
        ]
    finally:
        with as_owner():
            Tenant.objects.filter(pk=tenant_a.pk).update(migrated_to=before)


def test_unfinished_tenants_are_reported(as_owner: AsOwner, examine: Examine) -> None:
    with as_owner():
        Tenant.objects.create(slug="new", name="New")
        old = Tenant.objects.create(slug="old", name="Old")
        Tenant.objects.filter(pk=old.pk).update(created_at="2026-01-01T00:00Z")
        late = Tenant.objects.create(slug="late", name="Late")
        Tenant.objects.filter(pk=late.pk).update(
            delete_at="2026-01-01T00:00Z", deletion_asked_at="2026-01-01T00:00Z", state="suspended"
        )
    found = examine()
    assert "1 tenants are registered and not set up: old." in texts_of_check(found, "tenants")
    assert texts_of_check(found, "deletions") == ["1 tenants should have been deleted: late."]


def test_public_schema_with_pending_migrations_is_reported(
    monkeypatch: pytest.MonkeyPatch, examine: Examine
) -> None:
    with altered(
        "UPDATE django_migrations SET name = 'x' WHERE app = 'tenants' AND name = '0001_initial'",
        "UPDATE django_migrations SET name = '0001_initial' WHERE app = 'tenants' AND name = 'x'",
    ):
        assert texts_of_check(examine(status="wrong"), "migrations") == [
            "The public schema lacks tenants.0001_initial."
        ]


@pytest.mark.slow
def test_sessions_that_hold_and_wait_for_locks_are_reported(
    examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "WARN_LOCK_SECONDS", 0.05)
    monkeypatch.setattr(postgres, "WARN_IDLE_SECONDS", 0.05)
    url = database.url_of("superuser")
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as waiting:
        holding, other = holder.info.backend_pid, waiting.info.backend_pid
        holder.execute("LOCK TABLE tenants_tenant IN ACCESS EXCLUSIVE MODE")
        waiting.pgconn.send_query(b"SELECT FROM tenants_tenant")
        # This check waits for the lock itself, too, so the other session has waited by then.
        examine()
        answers = examine()
        holder.rollback()
        while waiting.pgconn.get_result() is not None:
            pass
    (tenants,) = texts_of_check(answers, "tenants")
    assert "lock timeout" in tenants
    locks = texts_of_check(answers, "locks")
    assert any(text.startswith(f"Process {other} of Postgres has waited for") for text in locks)
    assert any(f" for a lock on tenants_tenant, which process {holding}" in text for text in locks)
    assert any(
        text.startswith(f"Process {holding} of Postgres (postgres) is idle in a transaction for")
        for text in locks
    )


def test_missing_rights_to_see_locks_are_reported(settings: Any, examine: Examine) -> None:
    settings.OWNER_DATABASE_URL = ""
    assert texts_of_check(examine(status="warning"), "locks")[0].startswith(
        "Locks and long transactions are"
    )
    settings.OWNER_DATABASE_URL = database.url_of("owner")
    with altered(
        "REVOKE pg_read_all_stats FROM konstruct_owner",
        "GRANT pg_read_all_stats TO konstruct_owner",
    ):
        assert texts_of_check(examine(status="warning"), "locks") == [
            "Transactions of other roles cannot be seen, only waits for locks."
        ]


def test_recipients_without_a_mail_server_are_reported(
    settings: Any, tenant_a: Tenant, examine: Examine
) -> None:
    settings.EMAIL_HOST = ""
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    with tenant_scope(tenant_a.id):
        NotificationRecipient.objects.create(
            destination="mail", email="team@example.com", events=["job_failed"]
        )
        tenant_connection().close()  # it reports its statistics then
    assert texts_of_check(examine(status="warning"), "notifications") == [
        "Tenants have about 1 recipients of notifications, and no mail is sent."
    ]


def inline() -> Iterator[tuple[str, Callable[[], Iterator[Any]]]]:
    """Connect to each subject of Postgres in this thread, and yield its checks one by one."""
    for subject in postgres.subjects():
        with subject.connect():
            yield from subject.checks.items()


def test_the_number_of_statements_does_not_grow_with_tenants(as_owner: AsOwner) -> None:
    numbers = []
    for more in (0, 300):
        with as_owner():
            Tenant.objects.bulk_create(
                Tenant(slug=f"many-{n}", name="Many", id=(pk := uuid4()),
                       schema_name=f"t_{pk.hex}", server="default", state="active")
                for n in range(more)
            )  # fmt: skip
        number = 0
        for _, check in inline():
            with CaptureQueriesContext(connection) as captured:
                list(check())
            number += len(captured)
        numbers.append(number)
    assert 0 < numbers[0] == numbers[1] < 80 * len(servers())


def test_doctor_writes_nothing() -> None:
    for name, check in inline():
        if name == "server":  # it lets another connection write a temporary file
            continue
        before = connections["default"]
        with before.cursor() as cursor:
            cursor.execute("SELECT 1")
        before.connection.read_only = True
        findings = list(check())
        assert findings, name
        assert not [finding for finding in findings if "read-only" in finding.text], name
