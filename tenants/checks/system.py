"""Django system checks: settings, roles, policies, privileges, and Postgres' logging."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.checks import check_admin_app
from django.core import checks

from tenants.checks.connections import unsafe_pooler_reason, unsafe_role_reason
from tenants.checks.privileges import unsafe_privileges
from tenants.context import fetch_all, server_scope, tenant_connection
from tenants.naming import SCHEMA_PATTERN
from tenants.personal_data import models_without_declaration
from tenants.roles import APP_ROLE
from tenants.schemas.rls_enforcement import unprotected_relations, unprotected_schemas
from tenants.servers import servers

# Settings that write statements or their values into the server's log, for this role. Django puts
# values into the statement, so settings about parameters alone do not suffice.
_CONTENT_LOGGING_SETTINGS = """
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


def check_declarations(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Check that every model declares the personal data of its table, by existing columns."""
    return [
        checks.Error(
            f"{label} does not declare the personal data of its table, or names columns that it"
            " does not have.",
            hint="Set `personal_data` on the model: see tenants/personal_data.py.",
            id="tenants.E006",
        )
        for label in models_without_declaration()
    ]


def check_database(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """Check that the role cannot bypass policies, and that every table of a tenant has one.

    Not for the owner's role, which owns the tables and adds missing policies in migrate.
    """
    if settings.DB_ROLE == "owner":
        return []
    found: list[checks.CheckMessage] = []
    for server in servers():
        if server in (databases or ()):
            with server_scope(server):
                found += check_server()
    return found


def check_server(*, reads_policies: bool = True) -> list[checks.CheckMessage]:
    """Check the application's connection to the current server, its role and what it finds.

    Args:
        reads_policies: compare the text of each policy, which takes ten times as long as a look at
            whether each table has one: 1.1 s for 160 tenants.
    """
    found: list[checks.CheckMessage] = []
    reason = unsafe_role_reason()
    if reason:
        found.append(
            checks.Error(
                f"Row-level security does not bind this process: {reason}.",
                hint=f"Connect as {APP_ROLE}.",
                id="tenants.E003",
            )
        )
    if reason := unsafe_pooler_reason():
        found.append(
            checks.Error(
                f"Tenants could meet behind the connection pooler: {reason}.",
                hint="Let it pool by transaction (PgBouncer: pool_mode = transaction).",
                id="tenants.E005",
            )
        )
    with tenant_connection().cursor() as cursor:
        if reads_policies:
            what = "relations of tenants are not protected"
            relations = unprotected_relations(cursor, SCHEMA_PATTERN)
            unprotected = [f"{relation.schema}.{relation.name}" for relation in relations]
        else:
            what = "schemas of tenants have a relation that is not protected"
            unprotected = sorted(unprotected_schemas(cursor, SCHEMA_PATTERN))
    if unprotected:
        names = ", ".join(unprotected[:10])
        found.append(
            checks.Error(
                f"{len(unprotected)} {what}, among them {names}.",
                hint="Run manage.py migrate.",
                id="tenants.E004",
            )
        )
    return found + _check_privileges() + _check_server_log()


def _check_privileges() -> list[checks.CheckMessage]:
    """Check that injected SQL can neither enter a tenant nor harm other sessions."""
    with tenant_connection().cursor() as cursor:
        found = unsafe_privileges(cursor)
    if not found:
        return []
    return [
        checks.Warning(
            f"SQL of the application's role could enter any tenant, or harm all: {len(found)} ways"
            f" are open, among them {', '.join(sorted(found, key='set_config'.__ne__)[:5])}.",
            hint="When no process of an older version runs, run deploy/bootstrap.sql again as a"
            " superuser (docs/operations.md, Upgrade). Where you have no superuser, Postgres cannot"
            " stop injected SQL (docs/tenancy.md).",
            id="tenants.W002",
        )
    ]


def _check_server_log() -> list[checks.CheckMessage]:
    """Check that Postgres does not log texts of users, where no erasure removes them."""
    logging = [f"{name} = {setting}" for name, setting in fetch_all(_CONTENT_LOGGING_SETTINGS)]
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
    """Run Django's checks of the admin pages, which otherwise only the URLs import."""
    admin.autodiscover()
    found: list[checks.CheckMessage] = check_admin_app(app_configs)
    return found


def register_all() -> None:
    """Register the checks with Django."""
    checks.register(check_admin_pages, checks.Tags.admin)
    checks.register(check_declarations, "tenants")
    checks.register(check_database, checks.Tags.database)
