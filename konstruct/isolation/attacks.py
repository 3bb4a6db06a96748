"""The attacks of `manage.py prove_isolation`: a few for each layer, with all ids of the victim.

The tests make these and many more (tests/konstruct/isolation).
"""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError
from django.test import Client

from konstruct.isolation.attempts import NOT_TRIED, Attempt, Layer
from konstruct.isolation.fixtures import USER, TenantFixture
from memory.conversations.short_term import get_recent_messages
from tenants import transaction
from tenants.context import connection, fetch_column, public_scope, tenant_scope
from tenants.exceptions import KonstructError, TenantPinned
from tenants.models import TenantModel
from tenants.redis_keys import memory_short_key
from tenants.roles import OWNER_ROLE

API = "/api/v1"
NO_ANSWER = f"{NOT_TRIED}the attacker's own key was refused (is the host in ALLOWED_HOSTS?)"
LISTS = ("agents", "conversations", "facts", "users")
# Statements that Postgres must refuse: actions of owners and superusers.
OWNER_STATEMENTS = (
    f"SET ROLE {OWNER_ROLE}",
    "ALTER TABLE {schema}.memory_message DISABLE ROW LEVEL SECURITY",
    "DROP POLICY tenant_isolation ON {schema}.memory_message",
    "TRUNCATE {schema}.memory_message CASCADE",
    "CREATE TABLE {schema}.mine (x int)",
)
# Statements that must be refused: they would switch to another tenant.
TENANT_SWITCHES = (
    "SELECT set_config('app.current_tenant', '{victim}', true)::int",
    "SELECT query_to_xml('SET app.current_tenant = ''{victim}''', true, true, '')::text",
    "DO $$ BEGIN PERFORM set_config('app.current_tenant', '{victim}', false); END $$",
    "SET app.current_tenant = '{victim}'",
)


def attack_by_sql(attacker: TenantFixture, victim: TenantFixture) -> Iterator[Attempt]:
    """Attack the tables of a victim on the same server, with the application's role."""
    if attacker.tenant.server != victim.tenant.server:
        return
    schema, victim_id = victim.tenant.schema_name, victim.tenant.id
    with tenant_scope(attacker.tenant.id):
        for model in apps.get_models():
            if issubclass(model, TenantModel):
                rows: Any = model._default_manager
                found = rows.exclude(tenant_id=attacker.tenant.id).count()
                what = f"read {model._meta.label}"
                yield Attempt(Layer.SCHEMA, "models", what, found > 0, f"{found} rows")
        other_schema = f"SELECT 1 WHERE current_schema() <> '{attacker.tenant.schema_name}'"
        yield attempt_statement("be in another schema than ours", other_schema, layer=Layer.SCHEMA)
        for table in tables_of(schema):
            yield attempt_statement(
                f"SELECT from the victim's {table}", f"SELECT count(*) FROM {schema}.{table}"
            )
            yield attempt_statement(
                f"UPDATE the victim's {table}", f"UPDATE {schema}.{table} SET tenant_id = tenant_id"
            )
            yield attempt_statement(
                f"DELETE from the victim's {table}", f"DELETE FROM {schema}.{table}"
            )
        for sql in (*OWNER_STATEMENTS, *TENANT_SWITCHES):
            done, outcome = try_sql(sql.format(schema=schema, victim=victim_id))
            yield Attempt(Layer.ROLE, "SQL", sql, done, str(outcome))
    with tenant_scope(attacker.tenant.id, pinned=True):
        try:
            with tenant_scope(victim_id):
                outcome = "entered"
        except TenantPinned as error:
            outcome = str(error)
        yield Attempt(Layer.PIN, "context", "enter the victim", outcome == "entered", outcome)


def attack_by_stores(attacker: TenantFixture, victim: TenantFixture) -> Iterator[Attempt]:
    """Attack the cache: the victim's agent under the attacker's tenant, and forged keys."""
    window = get_recent_messages(attacker.tenant.id, victim.agent_id, USER)
    what = "read the window of the victim's agent"
    yield Attempt(Layer.KEYS, "cache", what, bool(window), f"{len(window)} found")
    target = memory_short_key(victim.tenant.id, victim.agent_id, USER)
    forged: tuple[tuple[Any, Any, str], ...] = (
        (f"{victim.tenant.id}:memory:short", victim.agent_id, USER),
        (victim.tenant.id, f"{victim.agent_id}:{USER}", ""),
        ("", victim.agent_id, USER),
        (attacker.tenant.id, f"x\n{target}", USER),
    )
    for parts in forged:
        try:
            refused, outcome = False, memory_short_key(*parts)
        except KonstructError as error:
            refused, outcome = True, str(error)
        yield Attempt(Layer.KEYS, "cache", f"a key of {parts!r}", not refused, outcome)


def attack_by_http(attacker: TenantFixture, victim: TenantFixture) -> Iterator[Attempt]:
    """Read by REST with the attacker's key, at the neutral host and at the victim's."""
    if get("agents/", public_host(), attacker.key)[0] != 200:
        yield Attempt(Layer.HTTP, "REST", f"be served at {public_host()}", False, NO_ANSWER)
    forged = attacker.key.replace(attacker.tenant.id.hex, victim.tenant.id.hex)
    requests = [("a key with the victim's tenant put in", "facts/", public_host(), forged)]
    for host, where in ((public_host(), "the neutral host"), (victim.host, "the victim's host")):
        for name in LISTS:
            requests.append((f"list {name} at {where}", f"{name}/", host, attacker.key))
        for name, key in (
            ("messages", victim.message_id),
            ("facts", victim.fact_id),
            ("agents", victim.agent_id),
        ):
            requests.append((f"read {name} at {where}", f"{name}/{key}/", host, attacker.key))
    for what, *request in requests:
        status, body = get(*request)
        yield Attempt(Layer.HTTP, "REST", what, victim.secret in body, f"HTTP {status}")


ATTACKS = (attack_by_sql, attack_by_stores, attack_by_http)


def get(path: str, host: str, key: str) -> tuple[int, str]:
    """Read a path of the REST API. Return the status and the body."""
    with public_scope():
        response = Client(raise_request_exception=False).get(
            f"{API}/{path}", headers={"Host": host, "Authorization": f"Bearer {key}"}, secure=True
        )
        return response.status_code, b"".join(response).decode(errors="replace")


def public_host() -> str:
    """Return the neutral host, at which the key names the tenant."""
    return str(settings.PUBLIC_HOSTS[0])


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
