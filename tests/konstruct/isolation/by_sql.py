"""Attacks in SQL with the application's role, inside the attacker's tenant."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.apps import apps
from django.db import DatabaseError

from tenants import transaction
from tenants.checks import APPEND_ONLY
from tenants.context import connection, fetch_column, server_scope, tenant_connection, tenant_scope
from tenants.exceptions import TenantPinned
from tenants.models import TenantModel
from tests.konstruct.isolation.attempts import Attempt, Layer
from tests.konstruct.isolation.fixtures import TenantFixture
from tests.konstruct.isolation.statements import (
    HARMING,
    NAMING,
    OWNER_STATEMENTS,
    TENANT_SWITCHES,
    UNSENT,
    WRITING,
)


def attack(attacker: TenantFixture, victim: TenantFixture) -> Iterator[Attempt]:
    """Attack a victim on the same server."""
    if attacker.tenant.server != victim.tenant.server:
        return
    with tenant_scope(attacker.tenant.id):
        yield from _by_models(attacker)
        yield from _by_named_schema(attacker, victim)
        yield from _by_claims(attacker, victim)
        yield from _by_the_outbox(victim)
        yield from _by_settings(victim)
        yield from _by_statements(attacker, victim)
        yield from _on_own_records()
    yield from _without_a_tenant(victim)
    yield from _by_connection(attacker, victim)


def _by_models(attacker: TenantFixture) -> Iterator[Attempt]:
    for model in apps.get_models():
        if issubclass(model, TenantModel):
            rows: Any = model._default_manager
            found = rows.exclude(tenant_id=attacker.tenant.id).count()
            what = f"read {model._meta.label}"
            yield Attempt(Layer.SCHEMA, "models", what, found > 0, f"{found} rows")


def _by_named_schema(attacker: TenantFixture, victim: TenantFixture) -> Iterator[Attempt]:
    """Name the victim's schema: only the policies protect it."""
    schema = victim.tenant.schema_name
    other_schema = f"SELECT 1 WHERE current_schema() <> '{attacker.tenant.schema_name}'"
    yield attempt_statement("be in another schema than ours", other_schema, layer=Layer.SCHEMA)
    tables = tables_of(schema)
    assert len(tables) > 40
    for table in tables:
        for verb, sql in (
            ("SELECT from", f"SELECT count(*) FROM {schema}.{table}"),
            ("UPDATE", f"UPDATE {schema}.{table} SET tenant_id = tenant_id"),
            ("DELETE from", f"DELETE FROM {schema}.{table}"),
        ):
            yield attempt_statement(f"{verb} the victim's {table}", sql)
    insert = (
        "INSERT INTO {}memory_message (agent_id, user_id, thread_id, channel, role, content,"
        " tenant_id) VALUES (gen_random_uuid(), 'x', 'x', 'x', 'user', 'x', '{}')"
    )
    for name, text in (("the victim's", f"{schema}."), ("our own", "")):
        statement = insert.format(text, victim.tenant.id)
        yield attempt_statement(
            f"INSERT a message in the victim's name into {name} table", statement
        )
    yield attempt_statement(
        "join our messages with the victim's",
        f"SELECT count(*) FROM memory_message JOIN {schema}.memory_message AS other USING (role)",
    )


def _by_claims(attacker: TenantFixture, victim: TenantFixture) -> Iterator[Attempt]:
    """Attack a public table that tenants write to: the claims of workspaces."""
    table, condition = "tenants_workspaceclaim", f"tenant_id = '{victim.tenant.id}'"
    yield attempt_statement(
        "SELECT the victim's claims", f"SELECT count(*) FROM {table} WHERE {condition}"
    )
    yield attempt_statement("DELETE the victim's claims", f"DELETE FROM {table} WHERE {condition}")
    yield attempt_statement(
        "UPDATE a claim of ours to the victim's",
        f"UPDATE {table} SET tenant_id = '{victim.tenant.id}'",
    )
    yield attempt_statement(
        "INSERT a claim in the victim's name",
        f"INSERT INTO {table} (channel, workspace, tenant_id)"
        f" VALUES ('slack', 'TFORGED', '{victim.tenant.id}')",
    )
    yield attempt_statement(
        "INSERT a claim of the victim's workspace",
        f"INSERT INTO {table} (channel, workspace, tenant_id)"
        f" VALUES ('slack', '{victim.workspace}', '{attacker.tenant.id}')",
    )


def _by_the_outbox(victim: TenantFixture) -> Iterator[Attempt]:
    """Attack the other one, the outbox, and a view of it."""
    condition = f"tenant_id = '{victim.tenant.id}'"
    for table in ("tenants_job", "orchestrator_pendingreply"):
        yield attempt_statement(
            f"SELECT the victim's {table}", f"SELECT count(*) FROM {table} WHERE {condition}"
        )
        yield attempt_statement(
            f"DELETE the victim's {table}", f"DELETE FROM {table} WHERE {condition}"
        )
        yield attempt_statement(
            f"UPDATE the victim's {table}", f"UPDATE {table} SET attempts = 0 WHERE {condition}"
        )
    yield attempt_statement(
        "INSERT work in the victim's name",
        "INSERT INTO tenants_job (tenant_id, kind, key)"
        f" VALUES ('{victim.tenant.id}', 'reply', '{victim.message_id}')",
    )


def _by_settings(victim: TenantFixture) -> Iterator[Attempt]:
    """Combine the settings: one is the victim's and the other the attacker's."""
    schema, victim_id = victim.tenant.schema_name, victim.tenant.id
    for layer, what, settings, sql in (
        (
            Layer.POLICY,
            "the victim's search_path and our tenant",
            {"search_path": schema},
            "SELECT count(*) FROM memory_message",
        ),
        (
            Layer.SCHEMA,
            "our search_path and the victim's tenant",
            {"app.current_tenant": str(victim_id)},
            f"SELECT count(*) FROM memory_message WHERE tenant_id = '{victim_id}'",
        ),
        (
            Layer.POLICY,
            "policies switched off by a setting",
            {"row_security": "off"},
            f"SELECT count(*) FROM {schema}.memory_message",
        ),
    ):
        done, outcome = _try_with(settings, sql)
        yield Attempt(layer, "SQL", what, done and outcome != [(0,)], str(outcome))
    driver: Any = tenant_connection().connection
    driver.execute(f"SET search_path = {schema}")
    driver.execute(f"SET app.current_tenant = '{victim_id}'")
    yield attempt_statement(
        "settings that a statement before has left behind",
        "SELECT count(*) FROM memory_message"
        f" WHERE tenant_id = '{victim_id}' OR content = '{victim.secret}'",
        layer=Layer.SCHEMA,
    )
    driver.execute("RESET search_path")
    driver.execute("RESET app.current_tenant")


def _by_statements(attacker: TenantFixture, victim: TenantFixture) -> Iterator[Attempt]:
    """Run one statement each, with our cursors, or the driver's if only Postgres refuses it."""
    names = {
        "schema": victim.tenant.schema_name,
        "victim": victim.tenant.id,
        "attacker": attacker.tenant.id,
        "table": "memory_message",
        "column": "content",
    }
    for via, run in {"SQL": try_sql, "driver": _try_by_driver}.items():
        for layer, statements in ((Layer.POLICY, NAMING), (Layer.ROLE, TENANT_SWITCHES)):
            for statement in statements:
                _, outcome = run(statement.format(**names))
                through = victim.secret in str(outcome)
                name = "a row of the victim's" if through else str(outcome)[:200]
                yield Attempt(layer, via, statement, through, name)
        for statement in WRITING:
            done, outcome = run(statement.format(**names))
            yield Attempt(
                Layer.POLICY, via, statement, done and outcome not in (0, []), str(outcome)
            )
        for statement in HARMING:
            done, outcome = run(statement.format(**names))
            yield Attempt(Layer.ROLE, via, statement, done, str(outcome))
    for statement in (*OWNER_STATEMENTS, *UNSENT):
        done, outcome = try_sql(statement.format(**names))
        yield Attempt(Layer.ROLE, "SQL", statement, done, str(outcome))


def _on_own_records() -> Iterator[Attempt]:
    """Append-only rows cannot be changed by their own tenant either."""
    for table in APPEND_ONLY:
        for statement in (f"UPDATE {table} SET tenant_id = tenant_id", f"DELETE FROM {table}"):
            done, outcome = try_sql(statement)
            yield Attempt(Layer.ROLE, "SQL", f"our own: {statement}", done, str(outcome))


def _without_a_tenant(victim: TenantFixture) -> Iterator[Attempt]:
    with server_scope(victim.tenant.server):
        yield attempt_statement(
            "SELECT without any tenant",
            f"SELECT count(*) FROM {victim.tenant.schema_name}.memory_message",
        )
        yield attempt_statement(
            "DELETE claims without any tenant", "DELETE FROM tenants_workspaceclaim"
        )
        yield attempt_statement("DELETE work without any tenant", "DELETE FROM tenants_job")
        yield attempt_statement(
            "give work up without any tenant", "UPDATE tenants_job SET failed_at = now()"
        )
        done, outcome = try_sql("SELECT count(*) FROM memory_message")
        yield Attempt(Layer.SCHEMA, "SQL", "SELECT in no schema", done, str(outcome))


def _by_connection(attacker: TenantFixture, victim: TenantFixture) -> Iterator[Attempt]:
    """Set the connection's tenant in code that is pinned to another."""
    with tenant_scope(attacker.tenant.id):
        try:
            tenant_connection().set_tenant(victim.tenant)
            outcome = "entered"
        except TenantPinned as error:
            outcome = str(error)
        finally:
            tenant_connection().set_schema(attacker.tenant.schema_name)
        yield Attempt(Layer.PIN, "connection", "enter the victim", outcome == "entered", outcome)


def _try_with(settings: Mapping[str, str], sql: str) -> tuple[bool, Any]:
    """Run a statement with settings that our cursors do not send, on the driver's cursor."""
    try:
        with transaction.atomic(), tenant_connection().wrap_database_errors:
            tenant_connection().enter()
            driver: Any = tenant_connection().connection
            for name, value in settings.items():
                driver.execute(f"SET LOCAL {name} = '{value}'")
            # One statement in a message, which leaves no state in the session.
            cursor = driver.execute(sql, binary=True)
            outcome = cursor.fetchall() if cursor.description else cursor.rowcount
            transaction.set_rollback(True)
            return True, outcome
    except DatabaseError as error:
        return False, str(error).splitlines()[0]


def _try_by_driver(sql: str) -> tuple[bool, Any]:
    return _try_with({}, sql)


def tables_of(schema: str) -> list[str]:
    """Return the names of all relations with rows in a schema."""
    return fetch_column(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p', 'm', 'f')"
        " AND relnamespace = %s::regnamespace ORDER BY relname",
        [schema],
    )


def try_sql(sql: str) -> tuple[bool, Any]:
    """Run a statement and roll it back.

    Returns:
        Whether Postgres executed it; and its rows, the number of changed rows, or the error.
    """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)
            while cursor.nextset():
                pass
            outcome = cursor.fetchall() if cursor.description else cursor.rowcount
            transaction.set_rollback(True)
            return True, outcome
    except DatabaseError as error:
        return False, str(error).splitlines()[0]


def attempt_statement(what: str, sql: str, *, layer: Layer = Layer.POLICY) -> Attempt:
    """Run a statement. It gets through if it counts, returns or changes a row."""
    done, outcome = try_sql(sql)
    return Attempt(layer, "SQL", what, done and outcome not in (0, [], [(0,)]), str(outcome)[:200])
