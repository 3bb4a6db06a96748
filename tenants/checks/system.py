"""Django system checks: declarations, and with `manage.py check --database default` Postgres."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.core import checks

from tenants.checks.connections import require_writable, unsafe_pooler_reason, unsafe_role_reason
from tenants.checks.privileges import excess_privileges, unsafe_privileges
from tenants.context import fetch_all, server_scope, tenant_connection
from tenants.naming import APP_ROLE, SCHEMA_PATTERN
from tenants.outages import OUTAGES, NotWritable, outage_reason
from tenants.personal_data import models_without_declaration
from tenants.schemas.rls_enforcement import unprotected_relations
from tenants.servers import MAIN, servers

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


@checks.register("tenants")
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


@checks.register(checks.Tags.database)
def check_database(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """Check that each server works, fits this code, and keeps tenants apart.

    Not as the owner, which owns the tables and adds missing policies in migrate.
    """
    found: list[checks.CheckMessage] = []
    if settings.DB_ROLE == "owner":
        return found
    for server in servers():
        if server not in (databases or ()):
            continue
        setting = "DATABASE_URL" if server == MAIN else f"TENANT_DATABASES ({server})"
        try:
            require_writable(server)
            with server_scope(server):
                found += _check_server()
        except (NotWritable, *OUTAGES) as error:
            found.append(
                checks.Error(
                    f"Postgres {server} takes no writes: {outage_reason(error)}",
                    hint=f"Start the server, make room on its disk, or correct {setting}.",
                    id="tenants.E007",
                )
            )
    return found


def _check_server() -> Iterator[checks.CheckMessage]:
    if reason := unsafe_pooler_reason():
        yield checks.Error(
            f"Tenants could meet behind the connection pooler: {reason}.",
            hint="Let it pool by transaction (PgBouncer: pool_mode = transaction).",
            id="tenants.E005",
        )
        return  # the other checks need transactions
    if reason := unsafe_role_reason():
        yield checks.Error(
            f"Row-level security does not bind this process: {reason}.",
            hint=f"Connect as {APP_ROLE}.",
            id="tenants.E003",
        )
    with tenant_connection().cursor() as cursor:
        relations = unprotected_relations(cursor, SCHEMA_PATTERN)
    if relations:
        names = ", ".join(f"{relation.schema}.{relation.name}" for relation in relations[:10])
        yield checks.Error(
            f"{len(relations)} relations of tenants are not protected, among them {names}.",
            hint="Run manage.py migrate.",
            id="tenants.E004",
        )
    yield from _check_privileges()
    yield from _check_server_log()


def _check_privileges() -> Iterator[checks.CheckMessage]:
    """Check that the application's role has no privilege that it must not have."""
    for what, names in excess_privileges().items():
        if names:
            yield checks.Error(
                f"{what[0].upper()}{what[1:]}: {', '.join(names[:5])}.",
                hint="Revoke it as a superuser; run deploy/bootstrap.sql and manage.py migrate"
                " again.",
                id="tenants.E014",
            )
    with tenant_connection().cursor() as cursor:
        found = unsafe_privileges(cursor)
    if found:
        yield checks.Warning(
            f"SQL of the application's role could enter any tenant, or harm all: {len(found)} ways"
            f" are open, among them {', '.join(sorted(found, key='set_config'.__ne__)[:5])}.",
            hint="When no process of an older version runs, run deploy/bootstrap.sql again as a"
            " superuser (docs/operations.md, Upgrade). Where you have no superuser, Postgres cannot"
            " stop injected SQL (docs/tenancy.md).",
            id="tenants.W002",
        )


def _check_server_log() -> Iterator[checks.CheckMessage]:
    """Check that Postgres does not log texts of users, where no erasure removes them."""
    logging = [f"{name} = {setting}" for name, setting in fetch_all(_CONTENT_LOGGING_SETTINGS)]
    if logging:
        yield checks.Warning(
            f"Postgres writes what users said into its log: {', '.join(logging)}.",
            hint="Run deploy/bootstrap.sql again as a superuser, or set log_min_messages = log,"
            " log_min_error_statement = panic, log_error_verbosity = terse, log_statement = none"
            " and log_min_duration_statement = -1 for the role (docs/operations.md).",
            id="tenants.W001",
        )
