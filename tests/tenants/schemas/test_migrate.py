"""manage.py migrate over many schemas: progress, failures, one run at a time, several processes."""

from collections.abc import Iterator
from io import StringIO

import psycopg
import pytest
from django.core.management import CommandError, call_command

from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tenants.postgres_tools import MIGRATE_ALL
from tenants.schemas import migrating, provisioning
from tests import database
from tests.database import as_owner, execute

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _as_owner() -> Iterator[None]:
    with as_owner():
        yield


def migrate(*arguments: str, **options: object) -> tuple[list[str], list[str], CommandError | None]:
    """Run migrate. Return the lines of stdout and of stderr, and the error."""
    out, err = StringIO(), StringIO()
    failure = None
    try:
        call_command("migrate", *arguments, stdout=out, stderr=err, no_color=True, **options)
    except CommandError as error:
        failure = error
    return out.getvalue().splitlines(), err.getvalue().splitlines(), failure


def without_seconds(lines: list[str]) -> list[list[str]]:
    return [line.split("  ")[:2] for line in lines]


def forget_migration(tenant: Tenant) -> None:
    """Make a migration pending that can be applied again."""
    with tenant_scope(tenant.id):
        execute("DELETE FROM django_migrations WHERE app = 'isolation'")
    Tenant.objects.filter(id=tenant.id).update(migrated_to="")


def break_schema(tenant: Tenant) -> None:
    """Make a migration pending that lacks a table."""
    forget_migration(tenant)
    with tenant_scope(tenant.id):
        execute("DROP TABLE django_session")


def test_every_schema_is_migrated_the_public_one_first() -> None:
    out, err, failure = migrate()
    assert without_seconds(out) == [["public", "up to date"], ["2 tenants", "up to date"]]
    assert (err, failure) == ([], None)


@pytest.mark.data
@pytest.mark.parametrize("worth_a_pool", [0, 100])
def test_several_processes_produce_the_result_of_one(
    monkeypatch: pytest.MonkeyPatch, tenant_b: Tenant, worth_a_pool: int
) -> None:
    monkeypatch.setattr(migrating, "MIN_POOLED_SCHEMAS", worth_a_pool)
    broken = provisioning.create_tenant(slug="tenant-c")
    break_schema(broken)
    forget_migration(tenant_b)
    out, err, failure = migrate(parallel=2)
    assert out[1] == "1 tenants  up to date"
    assert [line.split()[1] for line in out[2:]] == ["tenant-b"]
    assert [line.split()[1] for line in err] == ["tenant-c"]
    assert str(failure).startswith("1 of 3 tenants not migrated: tenant-c.")
    # The parent's connection and its lock survived the children.
    assert execute("SELECT current_user") == [("konstruct_owner",)]


@pytest.mark.data
def test_a_tenant_that_never_served_is_left_to_the_owner_worker(tenant_a: Tenant) -> None:
    """Otherwise `manage.py serve` and compose would not start for the other tenants."""
    never = Tenant.objects.create(slug="a-never-served", name="cannot be set up")
    execute(f"CREATE SCHEMA {never.schema_name}")
    execute(f"CREATE TABLE {never.schema_name}.memory_message (other int)")  # a conflicting table
    forget_migration(tenant_a)
    out, err, failure = migrate(parallel=2)
    assert (err, failure) == ([], None)
    assert out[1] == "1 tenants  up to date"
    assert out[2].startswith("[1/1] tenant-a  1 applied")
    # If named, it is the purpose of the run.
    _, err, failure = migrate(schema_name="a-never-served")
    assert err[0].endswith('relation "memory_message" already exists')
    assert str(failure).startswith("1 of 1 tenants not migrated")
    never.refresh_from_db()
    assert (never.state, bool(never.provisioning_error)) == ("provisioning", True)
    # Commands for migrated schemas ignore it.
    assert migrate(check_unapplied=True)[2] is None
    assert migrate("isolation", plan=True)[2] is None
    assert migrate("isolation")[2] is None


def test_a_second_run_is_refused() -> None:
    with psycopg.connect(database.url_of("owner")) as other_run:
        other_run.execute("SELECT pg_advisory_lock(%s, %s)", MIGRATE_ALL)
        out, _, failure = migrate()
        assert out == []
        assert str(failure) == "another migrate is running on this database; wait for it"
        # Not left to the end of the connection, which Postgres may notice later.
        other_run.execute("SELECT pg_advisory_unlock(%s, %s)", MIGRATE_ALL)
    assert migrate()[2] is None


@pytest.mark.parametrize("name", ["slug", "schema_name"])
def test_migrate_of_one_tenant_migrates_that_tenant_alone(tenant_a: Tenant, name: str) -> None:
    out, err, failure = migrate(schema_name=getattr(tenant_a, name))
    assert without_seconds(out) == [["[1/1] tenant-a", "up to date"]]
    assert (err, failure) == ([], None)


@pytest.mark.data
def test_back_and_forth_one_app_in_every_schema(tenant_a: Tenant, tenant_b: Tenant) -> None:
    unprotected = (
        "SELECT count(*) FROM pg_tables AS t WHERE schemaname LIKE 't\\_%' AND NOT rowsecurity"
        " AND tablename IN ('auth_user', 'django_session', 'django_migrations')"
    )
    out, *_ = migrate("isolation", "zero", interactive=False)
    assert [line.split("  ")[1] for line in out] == ["1 applied"] * 3
    assert execute(unprotected) == [(6,)]
    with tenant_scope(tenant_a.id):
        assert "tenant_id" not in {
            column.name
            for column in connection.introspection.get_table_description(
                connection.cursor(), "auth_user"
            )
        }
    out, *_ = migrate("isolation")
    assert [line.split("  ")[1] for line in out] == ["1 applied"] * 3
    assert execute(unprotected) == [(0,)]
    migrate()
    assert migrate(tenant=True)[0] == ["2 tenants  up to date"]


@pytest.mark.parametrize(
    "arguments", [("memory", "zero"), ("memory", "zero", "--schema", "tenant-a")]
)
def test_undoing_migrations_asks_and_says_what_is_deleted(
    tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    questions = []

    def refuse(question: str) -> str:
        questions.append(question)
        return "no"

    monkeypatch.setattr("builtins.input", refuse)
    out, _, failure = migrate(*arguments)
    (question,) = questions
    assert f" deletes from {1 if len(arguments) > 2 else 2} tenants " in question
    assert "memory_message" in question
    assert "orchestrator_agent" in question  # it refers to memory
    assert (out, str(failure)) == ([], "not migrated")
    with tenant_scope(tenant_a.id):
        assert execute("SELECT count(*) FROM memory_message") == [(0,)]

    def end_of_file(question: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", end_of_file)
    assert "pass --noinput" in str(migrate(*arguments)[2])
    assert migrate("memory", "zero", plan=True)[2] is None
    assert migrate("memory")[2] is None  # forwards


def test_check_reports_pending_migrations(tenant_b: Tenant) -> None:
    assert migrate(check_unapplied=True)[2] is None
    forget_migration(tenant_b)
    try:
        out, _, failure = migrate(check_unapplied=True)
    finally:
        applied, *_ = migrate()
    assert [line.split("  ")[1] for line in applied] == ["up to date", "up to date", "1 applied"]
    assert without_seconds(out)[1:] == [
        ["1 tenants", "up to date"],
        ["[1/1] tenant-b", "not up to date"],
    ]
    assert str(failure) == "there are migrations that were not applied"
    assert migrate(check_unapplied=True)[2] is None


def test_a_table_that_a_library_brought_is_protected_and_named(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id):
        execute("CREATE TABLE brought (id int)")
    try:
        out, *_ = migrate()
    finally:
        with tenant_scope(tenant_a.id):
            execute("DROP TABLE brought")
    assert without_seconds(out)[1] == ["1 tenants", "up to date"]
    assert without_seconds(out)[2] == ["[1/1] tenant-a", "up to date, protected brought"]
