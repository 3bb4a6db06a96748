"""Attacks in SQL: with the application's role, from inside the attacker, on the victim's tables."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.apps import apps
from django.db import DatabaseError, models

from konstruct.isolation.configuration import APPEND_ONLY
from konstruct.isolation.fixtures import Party
from konstruct.isolation.records import Attempt, Wall
from konstruct.isolation.statements import (
    ENTERING,
    HARMING,
    NAMING,
    UNSENT,
    WRITING,
)
from tenants import transaction
from tenants.context import connection, server_scope, tenant_connection, tenant_scope
from tenants.exceptions import TenantPinned
from tenants.models import TenantModel
from tenants.roles import OWNER_ROLE

_TABLES = """
    SELECT relname FROM pg_class
    WHERE relkind IN ('r', 'p', 'm', 'f') AND relnamespace = %s::regnamespace ORDER BY relname
"""
# What only an owner may do, or a superuser.
_POWERS = (
    f"SET ROLE {OWNER_ROLE}",
    "SET SESSION AUTHORIZATION postgres",
    "ALTER TABLE {schema}.memory_message DISABLE ROW LEVEL SECURITY",
    "DROP POLICY tenant_isolation ON {schema}.memory_message",
    "CREATE POLICY opened ON {schema}.memory_message USING (true)",
    "ALTER TABLE {schema}.memory_message OWNER TO konstruct_app",
    "TRUNCATE {schema}.memory_message CASCADE",
    "DROP SCHEMA {schema} CASCADE",
    "CREATE TABLE {schema}.mine (x int)",
    "CREATE FUNCTION {schema}.mine() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
)


def attack(attacker: Party, victim: Party) -> Iterator[Attempt]:
    """All attacks by SQL and by models."""
    with tenant_scope(attacker.tenant.id):
        yield from _by_models(attacker, victim)
        yield from _by_named_schema(attacker, victim)
        yield from _by_claims(attacker, victim)
        yield from _by_the_outbox(victim)
        yield from _by_settings(attacker, victim)
        yield from _by_statements(attacker, victim)
        yield from _by_powers(victim)
        yield from _on_own_records()
    yield from _without_a_tenant(victim)
    yield from _out_of_a_pin(attacker, victim)


def _tenant_models() -> list[type[models.Model]]:
    found = (model for model in apps.get_models() if issubclass(model, TenantModel))
    return sorted(found, key=lambda model: model._meta.label)


def _by_models(attacker: Party, victim: Party) -> Iterator[Attempt]:
    """Every model of a tenant's, asked for everything, and for the victim's by name."""
    for model in _tenant_models():
        rows: Any = model._default_manager
        foreign = rows.exclude(tenant_id=attacker.tenant.id).count()
        foreign += rows.filter(tenant_id=victim.tenant.id).count()
        yield Attempt(
            Wall.SCHEMA, "models", f"read {model._meta.label}", foreign > 0, _rows(foreign)
        )
    _, outcome = _try(f"SELECT current_schema() <> '{attacker.tenant.schema_name}'")
    yield Attempt(
        Wall.SCHEMA, "models", "be in another schema than ours", outcome == [(True,)], str(outcome)
    )


def _by_named_schema(attacker: Party, victim: Party) -> Iterator[Attempt]:
    """The schema wall is climbed by naming the victim's: policies alone stand."""
    schema = victim.tenant.schema_name
    with connection.cursor() as cursor:
        cursor.execute(_TABLES, [schema])
        tables = [name for (name,) in cursor.fetchall()]
    for table in tables:
        yield _reads(f"SELECT from the victim's {table}", f"SELECT count(*) FROM {schema}.{table}")
        for verb, statement in (
            ("UPDATE", f"UPDATE {schema}.{table} SET tenant_id = tenant_id"),
            ("DELETE from", f"DELETE FROM {schema}.{table}"),
        ):
            yield _writes(f"{verb} the victim's {table}", statement)
    insert = (
        "INSERT INTO {}memory_message (agent_id, user_id, thread_id, channel, role, content,"
        " tenant_id) VALUES (gen_random_uuid(), 'x', 'x', 'x', 'user', 'x', '{}')"
    )
    for name, text in (("the victim's", f"{schema}."), ("our own", "")):
        statement = insert.format(text, victim.tenant.id)
        yield _writes(f"INSERT a message in the victim's name into {name} table", statement)
    yield _reads(
        "join our messages with the victim's",
        f"SELECT count(*) FROM memory_message JOIN {schema}.memory_message AS other USING (role)",
    )


def _by_claims(attacker: Party, victim: Party) -> Iterator[Attempt]:
    """A public table that tenants write to: whose a channel's workspace is."""
    table, theirs = "tenants_workspaceclaim", f"tenant_id = '{victim.tenant.id}'"
    yield _reads("SELECT the victim's claims", f"SELECT count(*) FROM {table} WHERE {theirs}")
    yield _writes("DELETE the victim's claims", f"DELETE FROM {table} WHERE {theirs}")
    yield _writes(
        "UPDATE a claim of ours to the victim's",
        f"UPDATE {table} SET tenant_id = '{victim.tenant.id}'",
    )
    yield _writes(
        "INSERT a claim in the victim's name",
        f"INSERT INTO {table} (channel, workspace, tenant_id)"
        f" VALUES ('slack', 'TFORGED', '{victim.tenant.id}')",
    )
    yield _writes(
        "INSERT a claim of the victim's workspace",
        f"INSERT INTO {table} (channel, workspace, tenant_id)"
        f" VALUES ('slack', '{victim.workspace}', '{attacker.tenant.id}')",
    )


def _by_the_outbox(victim: Party) -> Iterator[Attempt]:
    """The other one: what waits for a worker. Each view of it is one of our own rows."""
    theirs = f"tenant_id = '{victim.tenant.id}'"
    for table in ("tenants_outboxentry", "orchestrator_pendingreply"):
        yield _reads(f"SELECT the victim's {table}", f"SELECT count(*) FROM {table} WHERE {theirs}")
        yield _writes(f"DELETE the victim's {table}", f"DELETE FROM {table} WHERE {theirs}")
        yield _writes(
            f"UPDATE the victim's {table}", f"UPDATE {table} SET attempts = 0 WHERE {theirs}"
        )
    yield _writes(
        "INSERT work in the victim's name",
        "INSERT INTO tenants_outboxentry (tenant_id, kind, key)"
        f" VALUES ('{victim.tenant.id}', 'reply', '{victim.message_id}')",
    )


def _by_settings(attacker: Party, victim: Party) -> Iterator[Attempt]:
    """Walls in combination: one setting is the victim's and the other ours."""
    schema, theirs = victim.tenant.schema_name, victim.tenant.id
    yield _reads(
        "the victim's search_path and our tenant",
        "SELECT count(*) FROM memory_message",
        settings={"search_path": schema},
    )
    yield _reads(
        "our search_path and the victim's tenant",
        f"SELECT count(*) FROM memory_message WHERE tenant_id = '{theirs}'",
        settings={"app.current_tenant": str(theirs)},
        wall=Wall.SCHEMA,
    )
    yield _reads(
        "policies switched off by a setting",
        f"SELECT count(*) FROM {schema}.memory_message",
        settings={"row_security": "off"},
    )
    driver: Any = tenant_connection().connection
    driver.execute(f"SET search_path = {schema}")
    driver.execute(f"SET app.current_tenant = '{theirs}'")
    yield _reads(
        "settings that a statement before has left behind",
        "SELECT count(*) FROM memory_message"
        f" WHERE tenant_id = '{theirs}' OR content = '{victim.secret}'",
        wall=Wall.SCHEMA,
    )
    driver.execute("RESET search_path")
    driver.execute("RESET app.current_tenant")


def _by_statements(attacker: Party, victim: Party) -> Iterator[Attempt]:
    """One statement each, by our cursors and, of what Postgres alone refuses, by the driver's."""
    names = {
        "schema": victim.tenant.schema_name,
        "victim": victim.tenant.id,
        "attacker": attacker.tenant.id,
        "table": "memory_message",
        "column": "content",
    }
    for via, run in {"SQL": _try, "driver": _try_by_driver}.items():
        for wall, statements in ((Wall.POLICY, NAMING), (Wall.ROLE, ENTERING)):
            for statement in statements:
                _, outcome = run(statement.format(**names))
                through = victim.secret in str(outcome)
                shown = "a row of the victim's" if through else str(outcome)[:200]
                yield Attempt(wall, via, statement, through, shown)
        for statement in WRITING:
            done, outcome = run(statement.format(**names))
            yield Attempt(
                Wall.POLICY, via, statement, done and outcome not in (0, []), str(outcome)
            )
        for statement in HARMING:
            done, outcome = run(statement.format(**names))
            yield Attempt(Wall.ROLE, via, statement, done, str(outcome))
    for statement in UNSENT:
        done, outcome = _try(statement.format(**names))
        yield Attempt(Wall.ROLE, "SQL", statement, done, str(outcome))


def _by_powers(victim: Party) -> Iterator[Attempt]:
    for statement in _POWERS:
        done, outcome = _try(statement.format(schema=victim.tenant.schema_name))
        yield Attempt(Wall.ROLE, "SQL", statement.format(schema="victim"), done, str(outcome))


def _on_own_records() -> Iterator[Attempt]:
    """What is append-only cannot be changed by its own tenant either."""
    for table in APPEND_ONLY:
        for statement in (f"UPDATE {table} SET tenant_id = tenant_id", f"DELETE FROM {table}"):
            done, outcome = _try(statement)
            yield Attempt(Wall.ROLE, "SQL", f"our own: {statement}", done, str(outcome))


def _without_a_tenant(victim: Party) -> Iterator[Attempt]:
    with server_scope(victim.tenant.server):
        yield _reads(
            "SELECT without any tenant",
            f"SELECT count(*) FROM {victim.tenant.schema_name}.memory_message",
        )
        yield _writes("DELETE claims without any tenant", "DELETE FROM tenants_workspaceclaim")
        yield _writes("DELETE work without any tenant", "DELETE FROM tenants_outboxentry")
        yield _writes(
            "give work up without any tenant", "UPDATE tenants_outboxentry SET failed_at = now()"
        )
        done, outcome = _try("SELECT count(*) FROM memory_message")
        yield Attempt(Wall.SCHEMA, "SQL", "SELECT in no schema", done, str(outcome))


def _out_of_a_pin(attacker: Party, victim: Party) -> Iterator[Attempt]:
    """Code that serves one tenant, as every request and task does."""
    with tenant_scope(attacker.tenant.id, pinned=True):
        try:
            with tenant_scope(victim.tenant.id):
                outcome = "entered"
        except TenantPinned as error:
            outcome = str(error)
        yield Attempt(Wall.PIN, "context", "enter the victim", outcome == "entered", outcome)
        try:
            tenant_connection().set_tenant(victim.tenant)
            outcome = "entered"
        except TenantPinned as error:
            outcome = str(error)
        finally:
            tenant_connection().set_schema(attacker.tenant.schema_name)
        yield Attempt(Wall.PIN, "connection", "enter the victim", outcome == "entered", outcome)


def _reads(
    what: str, sql: str, *, settings: Mapping[str, str] | None = None, wall: Wall = Wall.POLICY
) -> Attempt:
    done, outcome = _try(sql) if settings is None else _try_with(settings, sql)
    through = done and outcome != [(0,)]
    return Attempt(wall, "SQL", what, through, _rows(outcome[0][0]) if done else str(outcome))


def _writes(what: str, sql: str) -> Attempt:
    """It gets through if it changes a row: no permission, or no row to be seen, is the same."""
    done, outcome = _try(sql)
    through = done and outcome != 0
    return Attempt(Wall.POLICY, "SQL", what, through, _rows(outcome) if done else str(outcome))


def _try(sql: str) -> tuple[bool, Any]:
    """Whether Postgres did it, with its rows, how many it changed, or why not. It is undone."""
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


def _try_with(settings: Mapping[str, str], sql: str) -> tuple[bool, Any]:
    """The same with settings that our cursors would not send: by the driver's own."""
    try:
        with transaction.atomic(), tenant_connection().wrap_database_errors:
            driver: Any = tenant_connection().connection
            for statement in tenant_connection().entering:
                driver.execute(statement)
            for name, value in settings.items():
                driver.execute(f"SET LOCAL {name} = '{value}'")
            # One statement in a message, of which nothing stays in the session.
            cursor = driver.execute(sql, binary=True)
            outcome = cursor.fetchall() if cursor.description else cursor.rowcount
            transaction.set_rollback(True)
            return True, outcome
    except DatabaseError as error:
        return False, str(error).splitlines()[0]


def _try_by_driver(sql: str) -> tuple[bool, Any]:
    return _try_with({}, sql)


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number} rows"
