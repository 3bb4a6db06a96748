"""Postgres' own log contains no texts of users, with any error of Postgres."""

import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from logging import ERROR, LogRecord
from uuid import uuid4

import pytest
import yaml
from django.conf import settings
from django.db import DatabaseError, transaction
from psycopg import Connection, sql

from konstruct.local import services
from konstruct.local.services import SETTINGS
from konstruct.logs import RedactingFormatter
from tenants import checks
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tests.database import as_owner
from tests.konstruct.running import PROJECT

pytestmark = pytest.mark.django_db(transaction=True)


MARKER = "the-marker-that-somebody-said"
MESSAGE = (
    "INSERT INTO memory_message (id, agent_id, user_id, thread_id, channel, role, content,"
    " idempotency_key) VALUES (gen_random_uuid(), %s, %s, 't', 'rest', %s, %s, %s)"
)
# Refused statements, and the part of the error with the text: message, details or context.
REFUSED = {
    "unique": [(MESSAGE, [uuid4(), MARKER, "user", MARKER, MARKER])] * 2,
    "check": [(MESSAGE, [uuid4(), MARKER, MARKER, MARKER, None])],
    "not null": [(MESSAGE, [uuid4(), MARKER, "user", None, MARKER])],
    "too long": [(MESSAGE, [uuid4(), MARKER, "user", "x", MARKER * 20])],
    "foreign key": [
        (
            "INSERT INTO auth_user_groups (user_id, group_id) SELECT 99, 99 WHERE %s <> ''",
            [MARKER],
        ),
        ("SET CONSTRAINTS ALL IMMEDIATE", []),
    ],
    "syntax": [(f"SELECT '{MARKER}' {MARKER}", [])],
    "unterminated": [(f"SELECT '{MARKER}", [])],
    "no such column": [(f'SELECT "{MARKER}"', [])],
    "no such table": [(f'SELECT FROM "{MARKER}"', [])],
    "uuid": [("SELECT %s::uuid", [MARKER])],
    "json": [("SELECT %s::jsonb", [f'{{"a": {MARKER}'])],
    "vector": [("SELECT %s::extensions.vector", [MARKER])],
    "regular expression": [("SELECT 'x' ~ %s", [f"{MARKER}("])],
    "permission": [("UPDATE memory_message SET content = %s", [MARKER])],
    "policy": [
        (
            "INSERT INTO memory_scope (tenant_id, agent_id, user_id) VALUES (%s, %s, %s)",
            [uuid4(), uuid4(), MARKER],
        )
    ],
    "cancelled": [
        ("SELECT count(*) FROM generate_series(1, 1000000000) WHERE %s <> ''", [MARKER]),
    ],
}


@pytest.fixture
def log() -> Callable[[], str]:
    """Return the log of Postgres from now on."""
    if not settings.EMBEDDED_DATABASE:
        pytest.skip("the log of a Postgres elsewhere cannot be read from here")
    path = services.home() / "postgres.log"
    begin = path.stat().st_size

    def written() -> str:
        with path.open() as file:
            # A file that is shorter was rotated meanwhile.
            file.seek(begin if path.stat().st_size >= begin else 0)
            return file.read()

    return written


def refusal(statements: list[tuple[str, list[object]]]) -> DatabaseError | None:
    """Send the statements in one transaction. Return the error if Postgres refuses one."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            connection.set_local({"statement_timeout": "1s"})
            for statement, parameters in statements:
                cursor.execute(statement, parameters)
    except DatabaseError as error:
        return error
    return None


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("role", ["app", "owner"])
def test_refused_statements_are_not_in_the_server_log(
    log: Callable[[], str], tenant_a: Tenant, role: str, kind: str
) -> None:
    with as_owner() if role == "owner" else nullcontext(), tenant_scope(tenant_a.id):
        refused = refusal(REFUSED[kind]) is not None
        allowed = (kind, role) == ("permission", "owner")
        assert refused or allowed
    assert MARKER not in log()


@pytest.mark.parametrize("kind", ["syntax", "unterminated", "json", "uuid"])
def test_details_of_refused_statements_are_not_in_the_application_log(
    tenant_a: Tenant, kind: str
) -> None:
    formatter = RedactingFormatter(settings.LOGGING["formatters"]["text"]["format"])
    with tenant_scope(tenant_a.id):
        error = refusal(REFUSED[kind])
    assert error is not None
    assert error.__cause__ is not None
    details = str(error).partition("\n")[2]
    # Postgres does not log a row here, because row-level security is on. Nor a value, because
    # Postgres binds it.
    assert MARKER in details or kind in ("json", "uuid")
    assert details
    # Once directly, and once as the cause of another error.
    record = LogRecord("a", ERROR, "", 0, "failed", (), (type(error), error, error.__traceback__))
    printed = formatter.format(record)
    assert "The above exception was the direct cause" in printed
    assert "Traceback (most recent call last)" in printed
    for line in details.splitlines():
        assert line not in printed.splitlines()
        assert f"  {line}" not in printed.splitlines()
    assert [line for line in printed.splitlines() if "DETAIL:" in line or "LINE 1:" in line] == []


@pytest.fixture
def superuser() -> Iterator[Connection]:
    """Connect to the embedded Postgres as a superuser."""
    with Connection.connect(
        services.database_url("superuser", "postgres"), autocommit=True
    ) as made:
        yield made


def test_compose_and_embedded_server_have_the_same_settings() -> None:
    services = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())["services"]
    settings_of_logs = {
        name: value for name, value in SETTINGS.items() if re.match("log_(?!line)", name)
    }
    assert len(settings_of_logs) == 6
    command = services["postgres"]["command"]
    assert {f"{name}={value}" for name, value in settings_of_logs.items()} <= set(command)


def test_check_of_the_embedded_server_finds_nothing(tenant_a: Tenant) -> None:
    assert list(checks._check_server_log()) == []


@pytest.mark.of_a_session  # which begins with the role's settings
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log_min_messages", "warning"),
        ("log_min_error_statement", "error"),
        ("log_error_verbosity", "default"),
        ("log_statement", "mod"),
        ("log_min_duration_statement", "500"),
    ],
)
def test_a_server_that_would_log_content_is_warned_of(
    tenant_a: Tenant, superuser: Connection, name: str, value: str
) -> None:
    role = sql.SQL("ALTER ROLE konstruct_app IN DATABASE {} SET {} = {}").format(
        sql.Identifier(connection.settings_dict["NAME"]), sql.Identifier(name), sql.Literal(value)
    )
    reset = sql.SQL("ALTER ROLE konstruct_app IN DATABASE {} RESET {}").format(
        sql.Identifier(connection.settings_dict["NAME"]), sql.Identifier(name)
    )
    superuser.execute(role)
    try:
        connection.close()
        (warning,) = checks._check_server_log()
    finally:
        superuser.execute(reset)
        connection.close()
    assert warning.id == "tenants.W001"
    assert warning.msg.startswith("Postgres writes what users said into its log: ")
    assert f"{name} = " in warning.msg
