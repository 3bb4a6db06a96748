"""Refusing to serve where one tenant could see another: system checks, and a last look at start."""

import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn
from uuid import uuid4

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.checks import check_admin_app
from django.core import checks
from django.db import DatabaseError
from django.db.backends.signals import connection_created

from tenants import transaction
from tenants.context import current_server, server_scope, tenant_connection, tenant_scope
from tenants.naming import SCHEMA_PATTERN
from tenants.postgresql.base import DatabaseWrapper
from tenants.postgresql.exceptions import ServerDown
from tenants.roles import APP_ROLE
from tenants.schemas.rls_enforcement import unprotected_relations
from tenants.servers import MAIN, note_server, replicas, servers
from tenants.walls import open_ways

logger = logging.getLogger(__name__)

# gunicorn ends at this status, instead of starting the worker again and again.
CANNOT_BOOT = 3

# What the connection's role could do to get round row-level security; no row: nothing.
# A member of an owning role can become it. Login roles are looked at too: SET ROLE can be undone.
_UNSAFE = """
    SELECT reason FROM (
        SELECT 1, r.rolname || ' is a superuser'
        FROM pg_roles AS r WHERE r.rolsuper AND r.rolname IN (current_user, session_user)
        UNION
        SELECT 2, r.rolname || ' has BYPASSRLS'
        FROM pg_roles AS r WHERE r.rolbypassrls AND r.rolname IN (current_user, session_user)
        UNION
        SELECT 3, session_user || ' owns, or is a member of the role that owns, tenants'' tables'
        WHERE EXISTS (
            SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE c.relkind IN ('r', 'p')
              AND (n.nspname ~ %s OR n.nspname = 'public' AND c.relname = 'tenants_tenant')
              AND (pg_has_role(session_user, c.relowner, 'MEMBER')
                   OR pg_has_role(current_user, c.relowner, 'MEMBER'))
        )
    ) AS found (severity, reason)
    ORDER BY severity LIMIT 1
"""


# What would write statements, or values of them, into the server's log, for this role. Django puts
# values into the statement, so that settings about parameters alone do not help.
_LOGS_CONTENT = """
    SELECT name, setting FROM pg_settings
    WHERE name = 'log_min_messages' AND setting NOT IN ('log', 'fatal', 'panic')
       OR name = 'log_min_error_statement' AND setting NOT IN ('fatal', 'panic')
       OR name = 'log_error_verbosity' AND setting <> 'terse'
       OR name = 'log_statement' AND setting NOT IN ('none', 'ddl')
       OR name IN ('log_min_duration_statement', 'log_min_duration_sample',
                   'auto_explain.log_min_duration') AND setting <> '-1'
       OR name = 'log_transaction_sample_rate' AND setting <> '0'
    ORDER BY name
"""


def why_role_is_unsafe() -> str:
    """Say why the connection's role could bypass the policies; empty if it could not."""
    connection = tenant_connection()
    # Superusers have every role; that reason is found before.
    with connection.cursor() as cursor:
        cursor.execute(_UNSAFE, [SCHEMA_PATTERN])
        found = cursor.fetchone()
    return found[0] if found else ""


def why_pooler_is_unsafe() -> str:
    """Say why tenants could meet behind a connection pooler; empty if not, or if there is none.

    Tried with the id of no tenant: every statement must find it, whatever session it comes to, and
    the next one outside must not.
    """
    connection = tenant_connection()
    if not connection.is_pooled:
        return ""
    nobody = uuid4()
    note_server(nobody, connection.alias)
    try:
        with tenant_scope(nobody):
            with transaction.atomic():
                found = [_session_and_tenant() for _ in range(3)]
            found.append((found[0][0], _session_and_tenant()[1]))
        _, left = _session_and_tenant()
    except DatabaseError as error:
        connection.close()
        return f"transactions fail ({str(error).splitlines()[0].strip()})"
    if set(found) != {(found[0][0], str(nobody))}:
        return "the statements of a transaction come to several sessions"
    return "a tenant outlives its transaction" if left else ""


def _session_and_tenant() -> tuple[int, str]:
    with tenant_connection().cursor() as cursor:
        cursor.execute(
            "SELECT pg_backend_pid(), coalesce(current_setting('app.current_tenant', true), '')"
        )
        found: tuple[int, str] = cursor.fetchone()
        return found


def refuse_unsafe_role() -> None:
    """End a web or worker process that could mix tenants on any server, with one clear line.

    A server that is down is looked at as soon as a connection is made to it.
    """
    for server in [*servers(), *replicas()]:
        try:
            with server_scope(server):
                _refuse_if_unsafe()
        except ServerDown as error:
            logger.warning("Its tenants wait: %s", error)
            _unseen.add(server)
            connection_created.connect(_look_at_last)


_unseen: set[str] = set()


def _look_at_last(connection: DatabaseWrapper, **_: Any) -> None:
    """Look at a server that was down when this process began, before anybody uses it."""
    if connection.alias in _unseen:
        try:
            with server_scope(connection.alias):
                _refuse_if_unsafe()
        except SystemExit:  # in a thread of many, which it would end alone
            os._exit(CANNOT_BOOT)
        _unseen.discard(connection.alias)


def _refuse_if_unsafe() -> None:
    setting = (
        "DATABASE_URL" if current_server() == MAIN else f"TENANT_DATABASES ({current_server()})"
    )
    if reason := why_role_is_unsafe():
        _refuse_to_serve(
            f"the database role {reason}, so row-level security does not bind it. Connect as"
            f" {APP_ROLE} ({setting})"
        )
    if reason := why_pooler_is_unsafe():
        _refuse_to_serve(
            f"behind the connection pooler of {setting} {reason}. Let it pool by transaction"
            " (PgBouncer: pool_mode = transaction), or name Postgres itself"
        )


def _refuse_to_serve(why: str) -> NoReturn:
    sys.stderr.write(f"konstruct: refusing to serve: {why}.\n")
    raise SystemExit(CANNOT_BOOT)


def check_settings(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Our engine, and no caching of the search_path."""
    found: list[checks.CheckMessage] = []
    if not isinstance(tenant_connection(), DatabaseWrapper):
        found.append(
            checks.Error(
                "The database's ENGINE does not set row-level security's tenant.",
                hint='Set ENGINE to "tenants.postgresql".',
                id="tenants.E001",
            )
        )
    if getattr(settings, "TENANT_LIMIT_SET_CALLS", False):
        found.append(
            checks.Error(
                "TENANT_LIMIT_SET_CALLS trusts a search_path that a rollback may have reverted.",
                hint="Set it to False.",
                id="tenants.E002",
            )
        )
    return found


def check_database(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """The role cannot bypass policies; every table of every tenant has one.

    Not for the owner, who owns the tables, and whose migrate protects what is not.
    """
    if settings.DB_ROLE == "owner":
        return []
    found: list[checks.CheckMessage] = []
    for server in servers():
        if server in (databases or ()):
            with server_scope(server):
                found += _check_server()
    return found


def _check_server() -> list[checks.CheckMessage]:
    found: list[checks.CheckMessage] = []
    reason = why_role_is_unsafe()
    if reason:
        found.append(
            checks.Error(
                f"Row-level security does not bind this process: {reason}.",
                hint=f"Connect as {APP_ROLE}.",
                id="tenants.E003",
            )
        )
    if reason := why_pooler_is_unsafe():
        found.append(
            checks.Error(
                f"Tenants could meet behind the connection pooler: {reason}.",
                hint="Let it pool by transaction (PgBouncer: pool_mode = transaction).",
                id="tenants.E005",
            )
        )
    with tenant_connection().cursor() as cursor:
        unprotected = unprotected_relations(cursor, SCHEMA_PATTERN)
    if unprotected:
        names = ", ".join(f"{relation.schema}.{relation.name}" for relation in unprotected[:10])
        found.append(
            checks.Error(
                f"{len(unprotected)} relations of tenants are not protected, among them {names}.",
                hint="Run manage.py migrate.",
                id="tenants.E004",
            )
        )
    return found + _check_walls() + _check_server_log()


def _check_walls() -> list[checks.CheckMessage]:
    """SQL that is data of a request can neither enter a tenant nor harm the others."""
    with tenant_connection().cursor() as cursor:
        found = open_ways(cursor)
    if not found:
        return []
    return [
        checks.Warning(
            f"SQL of the application's role could enter any tenant, or harm all: {len(found)} ways"
            f" are open, among them {', '.join(sorted(found, key='set_config'.__ne__)[:5])}.",
            hint="Run deploy/bootstrap.sql again as a superuser, without keep_old_code. Where there"
            " is no superuser, injected SQL is held by no wall in Postgres (docs/tenancy.md).",
            id="tenants.W002",
        )
    ]


def _check_server_log() -> list[checks.CheckMessage]:
    """Postgres keeps what users said out of its own log, where nobody would erase it."""
    with tenant_connection().cursor() as cursor:
        cursor.execute(_LOGS_CONTENT)
        logging = [f"{name} = {setting}" for name, setting in cursor.fetchall()]
    if not logging:
        return []
    return [
        checks.Warning(
            f"Postgres writes what users said into its log: {', '.join(logging)}.",
            hint="Run deploy/bootstrap.sql again as a superuser, or set log_min_messages = log,"
            " log_min_error_statement = panic, log_error_verbosity = terse, log_statement = none"
            " and log_min_duration_statement = -1 for the role (docs/operations.md).",
            id="tenants.W001",
        )
    ]


def check_admin_pages(app_configs: Any, **_: object) -> list[checks.CheckMessage]:
    """Django's check of all pages, which only the URLs have imported otherwise."""
    admin.autodiscover()
    found: list[checks.CheckMessage] = check_admin_app(app_configs)
    return found


def register_all() -> None:
    """Register the checks with Django."""
    checks.register(check_admin_pages, checks.Tags.admin)
    checks.register(check_settings, "tenants")
    checks.register(check_database, checks.Tags.database)
