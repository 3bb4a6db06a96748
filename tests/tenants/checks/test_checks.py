"""A process that could bypass the policies does not serve; the checks report the problem."""

import re
from pathlib import Path

import pytest
from django.core import checks as django_checks
from django.test import override_settings

from tenants import checks
from tenants.checks import CANNOT_BOOT, refuse_unsafe_role, unsafe_role_reason
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tests.database import MakeTenant, as_owner
from tests.konstruct.running import run_python

PROJECT = Path(__file__).resolve().parents[3]
BOOTSTRAP = PROJECT / "deploy" / "bootstrap.sql"


def ids(found: list[django_checks.CheckMessage]) -> list[str | None]:
    return [message.id for message in found]


def test_the_application_may_serve(tenant_a: Tenant) -> None:
    assert unsafe_role_reason() == ""
    refuse_unsafe_role()


def test_the_owner_may_not(tenant_a: Tenant, capsys: pytest.CaptureFixture[str]) -> None:
    with as_owner(), pytest.raises(SystemExit) as refusal:
        refuse_unsafe_role()
    assert refusal.value.code == CANNOT_BOOT
    assert capsys.readouterr().err == (
        "konstruct: refusing to serve: the database role konstruct_owner owns, or is a member of"
        " the role that owns, tenants' tables, so row-level security does not bind it."
        " Connect as konstruct_app (DATABASE_URL).\n"
    )


def test_a_web_process_with_the_owners_role_ends_with_one_line(
    process_environment: dict[str, str],
) -> None:
    environment = {**process_environment, "KONSTRUCT_DB_ROLE": "owner"}
    ran = run_python("-c", "import konstruct.asgi", env=environment)
    assert (ran.returncode, ran.stdout) == (CANNOT_BOOT, "")
    assert ran.stderr.startswith("konstruct: refusing to serve: the database role konstruct_owner")
    assert ran.stderr.count("\n") == 1


def test_checks_without_a_database_send_no_query() -> None:
    """The test has no database: a query would fail."""
    assert checks.check_database(None) == []


@pytest.mark.django_db(transaction=True)
def test_an_unprotected_table_and_an_unsafe_role_are_errors(make_tenant: MakeTenant) -> None:
    tenant = make_tenant()
    with as_owner(), tenant_scope(tenant.id), connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bare (id int)")
    (found,) = checks.check_database(None, databases=["default"])
    assert found.id == "tenants.E004"
    assert found.msg == (
        f"1 relations of tenants are not protected, among them {tenant.schema_name}.bare."
    )
    with as_owner():
        assert ids(checks.check_database(None, databases=["default"])) == [
            "tenants.E003",
            "tenants.E004",
        ]
        with override_settings(DB_ROLE="owner"):
            assert checks.check_database(None, databases=["default"]) == []


def test_the_checks_are_registered() -> None:
    registered = django_checks.registry.registry.get_checks()
    assert checks.check_declarations in registered
    assert checks.check_database in registered


@pytest.mark.django_db
def test_the_catalogue_opens_no_way_that_is_not_listed() -> None:
    with connection.cursor() as cursor:
        assert checks.unsafe_privileges(cursor) == []


def test_the_script_and_the_check_list_the_same_functions() -> None:
    (listed,) = re.findall(r"proname <> ALL \(ARRAY\[(.*?)\]\)", BOOTSTRAP.read_text(), re.DOTALL)
    functions = {
        "give_back_jobs", "held_tenant_locks", "renew_worker", "return_expired_jobs",
        "try_tenant_lock", "wait_for_tenant_lock",
    }  # fmt: skip
    assert set(re.findall(r"'(\w+)'", listed)) == checks.ALLOWED_FUNCTIONS - functions
