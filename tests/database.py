"""The tests' database: the owner creates, migrates and cleans it, konstruct_app uses it."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import dj_database_url
import django
import psycopg
from django.conf import settings
from django.db import connections
from django.db.models import QuerySet
from django.test import override_settings
from django_tenants.utils import schema_context
from psycopg import sql
from psycopg_pool import ConnectionPool

from konstruct.local import embedded, services
from tenants.context import tenant_connection, tenant_scope
from tenants.models import Tenant
from tenants.naming import APP_ROLE
from tenants.postgresql.pool import pool_options
from tenants.schemas import provisioning
from tenants.servers import MAIN, servers

MakeTenant = Callable[..., Tenant]

# The tenants of all tests. A test can add others (make_tenant).
SHARED_TENANTS = ("tenant-a", "tenant-b")
# Tables that migrate fills. Tests must not delete their rows.
MIGRATED_TABLES = (
    "django_migrations", "django_content_type", "auth_permission", "auth_group",
    "auth_group_permissions", "checkpoint_migrations",
)  # fmt: skip

# Tables of public whose rows are kept between tests.
KEPT_TABLES = ("tenants_tenant", "tenants_domain", "tenants_schemastate")

# URLs, without a database, of the poolers that the application's connections go through.
_poolers: list[str] = []
# URLs for a role of the servers beside the tests' own (tests/servers.py).
further_servers: dict[str, Callable[[str], str]] = {}
# The owner's connections that remove committed rows, by server. New connections for each of a
# thousand tests would take five times as long.
_cleaners: dict[str, psycopg.Connection] = {}
# Connections of the parent in a forked child.
_inherited: list[Any] = []
# The keys of a Django connection's settings for the role and the server.
CREDENTIALS = ("USER", "PASSWORD", "HOST", "PORT", "OPTIONS")

# As in the Makefile.
HOME_OF_TESTS = ".konstruct/test"
# The process of pytest-xdist; "main" without it.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
# The advisory lock of the process that creates the template database.
MAKING = 0x6B6F6E73


@contextmanager
def made() -> Iterator[None]:
    """Provide a database with the shared tenants for konstruct_app, until the block ends."""
    connection = connections["default"]
    before = connection.settings_dict["NAME"]
    _wait_for_no_disk()
    connect_as("owner")
    _copy()
    connect_as("app")
    assert_application_role()
    yield
    close_cleaners()
    connection.close()
    _end_other_sessions()
    connect_as("owner")
    connection.creation.destroy_test_db(before, verbosity=0)


def _wait_for_no_disk() -> None:
    """Turn off synchronous commits in the cluster of `make test`, which has only test data."""
    if settings.EMBEDDED_DATABASE and services.home() == settings.BASE_DIR / HOME_OF_TESTS:
        embedded.ensure_postgres()  # psycopg does not start the server
        let_commits_not_wait(url_of("superuser"))


def let_commits_not_wait(url: str) -> None:
    """Turn off fsync in the cluster at this URL of a superuser."""
    with psycopg.connect(url, autocommit=True) as superuser:
        for name in ("fsync", "full_page_writes", "synchronous_commit"):
            superuser.execute(f"ALTER SYSTEM SET {name} = off")
        superuser.execute("SELECT pg_reload_conf()")


def _end_other_sessions() -> None:
    """Wait for sessions of ended processes to close; terminate and report the remaining ones."""
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(url_of("superuser"), autocommit=True) as superuser:
        for _ in range(50):
            left = superuser.execute(f"SELECT usename, state, query {others}").fetchall()
            if not left:
                return
            time.sleep(0.1)
        superuser.execute(f"SELECT pg_terminate_backend(pid, 5000) {others}")
        sys.stderr.write(f"Tests have left sessions: {left}\n")


def _close_to_others() -> None:
    """Restrict the database like deploy/bootstrap.sql does."""
    connection = connections["default"]
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute(f"REVOKE ALL ON DATABASE {name} FROM PUBLIC")
        cursor.execute(f"GRANT CONNECT ON DATABASE {name} TO {APP_ROLE}")


def _copy() -> None:
    """Copy the template database of the same code; create it if it is missing."""
    connection = connections["default"]
    creation, code = connection.creation, _digest_of_code()
    with creation._nodb_cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MAKING])  # until this connection ends
        name = creation._get_test_db_name()
        cursor.execute(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s",
            [name],
        )
        if cursor.fetchone() != (code,):
            creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
            provision_shared_tenants()
            cursor.execute(f"COMMENT ON DATABASE {connection.ops.quote_name(name)} IS '{code}'")
        connection.settings_dict["NAME"] = name
        creation.clone_test_db(WORKER, verbosity=0)
    connection.settings_dict["NAME"] = creation.get_test_db_clone_settings(WORKER)["NAME"]
    _close_to_others()


def _digest_of_code() -> str:
    """Return a digest of the code of migrations and provisioning."""
    root = Path(settings.BASE_DIR)
    digest = sha256(django.__version__.encode() + Path(__file__).read_bytes())
    digest.update((root / "deploy" / "bootstrap.sql").read_bytes())
    for package in ("konstruct", "memory", "tenants"):
        for path in sorted(p for kind in ("*.py", "*.sql") for p in (root / package).rglob(kind)):
            digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()


def url_of(role: str, server: str = MAIN) -> str:
    """Return the URL of the tests' database on a server for a role: app, owner or superuser."""
    if server != MAIN:
        return further_servers[server](role)
    name = connections["default"].settings_dict["NAME"]
    if role == "app" and _poolers:
        return f"{_poolers[-1]}/{name}"
    if settings.EMBEDDED_DATABASE:
        return services.database_url(role, name)
    url = settings.DATABASE_OWNER_URL if role == "owner" else settings.DATABASE_URL
    return url.rsplit("/", 1)[0] + f"/{name}"


@contextmanager
def through(url: str) -> Iterator[None]:
    """Connect the application through a pooler, in every thread, during the block."""
    target = credentials(url)
    connection = connections["default"]
    connection.close()
    before = {name: connection.settings_dict[name] for name in target}
    connection.settings_dict.update(target)
    _poolers.append(url)
    try:
        with override_settings(APPLICATION_DATABASE_URL=url):
            yield
    finally:
        _poolers.pop()
        connection.close()
        connection.settings_dict.update(before)


@contextmanager
def pools(size: int) -> Iterator[dict[str, ConnectionPool[Any]]]:
    """Use a connection pool for each server, in every thread."""
    found = {alias: connections[alias] for alias in connections.settings}
    with ExitStack() as stack:
        for alias, connection in found.items():
            connection.close()
            options = connection.settings_dict["OPTIONS"]
            pooled = {
                "OPTIONS": {**options, "pool": pool_options(alias, size, 600)},
                "CONN_MAX_AGE": 0,
                "CONN_HEALTH_CHECKS": False,
            }
            stack.enter_context(mock.patch.dict(connection.settings_dict, pooled))
            stack.callback(connection.close_pool)
            stack.callback(connection.close)
        yield {alias: connection.pool for alias, connection in found.items()}


def plan_of(query: QuerySet[Any] | str, values: Any = None) -> str:
    """Return Postgres' plan of a statement in this transaction: the cursors send no EXPLAIN."""
    if not isinstance(query, str):
        query, values = query.query.sql_with_params()
    cursor = psycopg.ClientCursor(tenant_connection().connection)
    return "\n".join(line for (line,) in cursor.execute(f"EXPLAIN {query}", values))


def forget_connections() -> None:
    """Let a forked child neither use nor close the connections of its parent."""
    for wrapper in connections.all(initialized_only=True):
        _inherited.append(wrapper.connection)
        wrapper.connection = None


def execute(statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Send a statement on the connection of the current tenant. Return its rows."""
    with tenant_connection().cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def inside(tenant: Tenant) -> Iterator[None]:
    """Run the block in a tenant, on its server; the block may enter other tenants too."""
    with tenant_scope(tenant.id):
        connections["default"].pinned_tenant = None
        yield


def entering(slug: str) -> list[str]:
    """Return statements of the driver that enter a tenant, and one that reads there."""
    with schema_context("public"):
        tenant = Tenant.objects.get(slug=slug)
    return [
        f"SET LOCAL search_path = {tenant.schema_name}",
        f"SET LOCAL app.current_tenant = '{tenant.id}'",
        "SELECT count(*) FROM auth_user",
    ]


def connect_as(role: str) -> None:
    """Connect the default connection as another role."""
    connection = connections["default"]
    connection.close()
    connection.settings_dict.update(credentials(url_of(role)))


@contextmanager
def as_owner() -> Iterator[None]:
    """Run the block on connections of the owner. Its changes are committed.

    An open transaction of the test on its own connection stays open. Threads of the block are also
    the owner's, except on the main server.
    """
    with ExitStack() as ends:
        ends.enter_context(_on_connection_of(MAIN, credentials(url_of("owner"))))
        for name, url in settings.TENANT_DATABASES_OWNER.items():
            ends.enter_context(mock.patch.dict(connections.settings[name], credentials(url)))
            ends.enter_context(_on_connection_of(name, credentials(url)))
        yield


@contextmanager
def _on_connection_of(server: str, who: dict[str, Any]) -> Iterator[None]:
    wrapper = connections[server]
    others = wrapper.copy()
    others.settings_dict.update(who)
    connections[server] = others
    try:
        yield
    finally:
        connections[server] = wrapper
        others.close()


def provision_shared_tenants() -> None:
    """Create the tenants of all tests."""
    for slug in SHARED_TENANTS:
        provisioning.create_tenant(slug=slug, name=slug.title())


def assert_application_role() -> None:
    """Fail unless the default connection is konstruct_app's."""
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT current_user, session_user")
        assert cursor.fetchone() == (APP_ROLE, APP_ROLE)


# One message with all statements, because hundreds of tests end with it. Rows of rollbacks leave
# pages behind, so only tables with pages are checked for rows. Few rows are deleted one by one,
# because TRUNCATE rebuilds the table and its referring tables with all indexes.
_EMPTY = """
DO $$
DECLARE
    schema text; tenant text; named record; is_filled boolean; filled text[]; pages int;
BEGIN
    UPDATE public.tenants_tenant
    SET state = 'active', state_before = '', deletion_asked_at = NULL, delete_at = NULL,
        backed_up_at = NULL, quotas = '{{}}', usage = '{{}}'
    WHERE state <> 'active' OR deletion_asked_at IS NOT NULL OR backed_up_at IS NOT NULL
        OR quotas <> '{{}}' OR usage <> '{{}}';
    DELETE FROM public.tenants_domain WHERE domain <> ALL ({domains});
    -- A process that a module has running loses its jobs with its row, and asks the model again.
    DELETE FROM public.tenants_worker WHERE expires_at < now();
    FOR schema, tenant IN
        SELECT nspname, coalesce(substring(nspname FROM '^t_(.*)')::uuid::text, '')
        FROM pg_namespace WHERE nspname = 'public' OR nspname ~ '^t_'
    LOOP
        PERFORM set_config('app.current_tenant', tenant, true);
        DELETE FROM public.tenants_job;
        filled := ARRAY[]::text[];
        pages := 0;
        FOR named IN
            SELECT oid, oid::regclass::text AS of_table FROM pg_class
            WHERE relnamespace = schema::regnamespace AND relkind = 'r'
              AND relname <> ALL ({kept}) AND pg_relation_size(oid) > 0
        LOOP
            EXECUTE 'SELECT EXISTS (SELECT FROM ' || named.of_table || ')' INTO is_filled;
            IF is_filled THEN
                filled := filled || named.of_table;
                pages := greatest(pages, pg_relation_size(named.oid) / 8192);
            END IF;
        END LOOP;
        IF pages > {few} THEN
            EXECUTE 'TRUNCATE ' || array_to_string(filled, ', ') || ' RESTART IDENTITY CASCADE';
        ELSE
            FOR named IN SELECT unnest(filled) AS of_table LOOP
                EXECUTE 'DELETE FROM ' || named.of_table;
            END LOOP;
        END IF;
    END LOOP;
END $$
"""
# Pages of a table.
_FEW = 8


def remove_committed_rows() -> None:
    """Delete the rows that a test committed, in the public schema and the shared tenants."""
    others = (
        cleaner(MAIN)
        .execute("SELECT FROM public.tenants_tenant WHERE slug <> ALL (%s)", [list(SHARED_TENANTS)])
        .fetchone()
    )
    if others is not None:
        with as_owner():
            remove_other_tenants()
    empty = sql.SQL(_EMPTY).format(
        domains=sql.Literal([provisioning.default_domain(s) for s in SHARED_TENANTS]),
        kept=sql.Literal([*MIGRATED_TABLES, *KEPT_TABLES, "tenants_worker"]),
        few=sql.Literal(_FEW),
    )
    for server in servers():
        # Running processes of a module may use the same tables; a test may have restarted the
        # server.
        for tries_left in (3, 2, 1, 0):
            try:
                cleaner(server).execute(empty)
            except (psycopg.errors.DeadlockDetected, psycopg.errors.AdminShutdown):
                if not tries_left:
                    raise
            else:
                break
    for connection in connections.all(initialized_only=True):
        connection.close_if_unusable_or_obsolete()


def cleaner(server: str) -> psycopg.Connection:
    """Return the owner's connection to the database of this process; a new one if it was closed."""
    if server not in _cleaners or _cleaners[server].closed:
        # If a test left a transaction open elsewhere, an error is better than waiting.
        _cleaners[server] = psycopg.connect(
            url_of("owner", server), autocommit=True, options="-c lock_timeout=15s"
        )
    return _cleaners[server]


def close_cleaners() -> None:
    """Close the sessions of the owner, which would prevent dropping the database."""
    while _cleaners:
        _cleaners.popitem()[1].close()


def remove_other_tenants() -> None:
    """Delete all tenants except the shared ones."""
    for tenant in Tenant.objects.exclude(slug__in=SHARED_TENANTS):
        provisioning.delete_tenant(tenant)


def credentials(url: str) -> dict[str, Any]:
    """Return the role and the server of Django's settings of a database."""
    parsed = dj_database_url.parse(url)
    options = {**parsed.get("OPTIONS", {}), "server_side_binding": True}  # as in the settings
    return {name: parsed.get(name) for name in CREDENTIALS} | {"OPTIONS": options}
