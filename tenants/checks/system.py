"""Django system checks: declarations, and with `manage.py check --database default` Postgres."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.conf import settings
from django.core import checks

from tenants.checks.connections import require_writable, unsafe_pooler_reason, unsafe_role_reason
from tenants.context import fetch_all, fetch_column, server_scope, tenant_connection
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
# Functions with side effects that statements of requests may call.
# deploy/bootstrap.sql revokes the others from PUBLIC.
ALLOWED_FUNCTIONS: Final = frozenset(
    {
        "array_sample",
        "array_shuffle",
        "clock_timestamp",
        "gen_random_uuid",
        "pg_database_size",
        "pg_indexes_size",
        "pg_is_in_recovery",
        "pg_relation_size",
        "pg_table_size",
        "pg_total_relation_size",
        "plpgsql_validator",
        "random",
        "random_normal",
        "timeofday",
        "uuidv4",
        "uuidv7",
        # Konstruct's own functions of the owner: tenants/migrations/0001_initial.py.
        "give_back_jobs",
        "held_tenant_locks",
        "renew_worker",
        "return_expired_jobs",
        "try_tenant_lock",
        "wait_for_tenant_lock",
    }
)
# They have no side effects, but read what other sessions send, or run text.
_REVEALING_FUNCTIONS: Final = r"^((table|schema|database)_to_xml|pg_stat_get_(backend_)?activity$)"

_UNSAFE = """
    SELECT DISTINCT p.proname FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE (p.provolatile = 'v' OR p.proname ~ %(revealing)s)
      AND p.prorettype NOT IN
          ('trigger'::regtype, 'event_trigger'::regtype, 'language_handler'::regtype)
      AND NOT 'internal'::regtype = ANY (p.proargtypes::oid[])
      AND has_schema_privilege(%(role)s, n.oid, 'USAGE')
      AND has_function_privilege(%(role)s, p.oid, 'EXECUTE')
      AND p.proname <> ALL (%(allowed)s)
    UNION ALL
    SELECT what FROM (VALUES
        ('UPDATE pg_settings', has_table_privilege(%(role)s, 'pg_settings', 'UPDATE')),
        ('DO', has_language_privilege(%(role)s, 'plpgsql', 'USAGE')),
        ('CREATE TEMPORARY TABLE', has_database_privilege(%(role)s, current_database(), 'TEMP')),
        ('CREATE SCHEMA', has_database_privilege(%(role)s, current_database(), 'CREATE')),
        ('CREATE in public', has_schema_privilege(%(role)s, 'public', 'CREATE')),
        ('DROP OWNED', NOT EXISTS (
            SELECT FROM pg_event_trigger
            WHERE evtname = 'konstruct_keep_grants' AND evtenabled <> 'D'
        ))
    ) AS way (what, is_open) WHERE is_open
"""
APPEND_ONLY: Final = (
    "api_creation",
    "audit_accessevent",
    "audit_erasurerequest",
    "audit_messageerasure",
    "memory_conversationembedding",
    "memory_indexedmessage",
    "memory_message",
    "memory_messageattribute",
    "memory_posting",
    "memory_promptsource",
    "memory_recallevent",
    "memory_scope",
    "memory_windowclear",
)

# Relations of tenants' schemas.
_RELATIONS: Final = (
    "SELECT c.oid::regclass::text FROM pg_class AS c"
    " JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname ~ %(schemas)s"
)
_EXCESS: Final = {
    "the role can make or change roles or databases": (
        "SELECT rolname FROM pg_roles WHERE rolname = %(app)s"
        " AND (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication)"
    ),
    "the role is a member of another": (
        "SELECT roleid::regrole::text FROM pg_auth_members WHERE member = %(app)s::regrole"
    ),
    "the role owns something": (
        "SELECT relname FROM pg_class WHERE relowner = %(app)s::regrole"
        " UNION ALL SELECT nspname FROM pg_namespace WHERE nspowner = %(app)s::regrole"
    ),
    "the role may create in a tenant's schema": (
        "SELECT nspname FROM pg_namespace"
        " WHERE nspname ~ %(schemas)s AND has_schema_privilege(%(app)s, oid, 'CREATE')"
    ),
    "the role may change an append-only table": (
        f"{_RELATIONS} AND c.relname = ANY(%(append_only)s)"
        " AND (has_table_privilege(%(app)s, c.oid, 'UPDATE, DELETE')"
        " OR has_any_column_privilege(%(app)s, c.oid, 'UPDATE'))"
    ),
    "the role may empty, refer to or watch a table": (
        f"{_RELATIONS} AND c.relkind IN ('r', 'p')"
        " AND has_table_privilege(%(app)s, c.oid, 'TRUNCATE, REFERENCES, TRIGGER')"
    ),
    "everybody may use a table": (
        f"{_RELATIONS} AND EXISTS (SELECT FROM aclexplode(c.relacl) WHERE grantee = 0)"
    ),
    "new tables or functions will be open to everybody": (
        "SELECT defaclrole::regrole::text FROM pg_default_acl, aclexplode(defaclacl) AS acl"
        " WHERE acl.grantee = 0"
    ),
    "a function or view runs with its owner's rights": (
        f"{_RELATIONS} AND c.relkind IN ('v', 'm') UNION ALL"  # noqa: S608 (constants)
        " SELECT p.proname FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace"
        " WHERE n.nspname ~ %(schemas)s AND p.prosecdef"
    ),
}


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


def unsafe_privileges(cursor: Any) -> list[str]:
    """Return functions and commands by which injected SQL could enter a tenant or harm others."""
    values = {
        "role": APP_ROLE,
        "allowed": list(ALLOWED_FUNCTIONS),
        "revealing": _REVEALING_FUNCTIONS,
    }
    cursor.execute(_UNSAFE, values)
    return [name for (name,) in cursor.fetchall()]


def excess_privileges() -> dict[str, list[str]]:
    """Return the privileges on the current server that the application's role must not have.

    Returns:
        The names that were found, which should be none, by the description of the check.
    """
    values = {"app": APP_ROLE, "schemas": SCHEMA_PATTERN, "append_only": list(APPEND_ONLY)}
    return {what: fetch_column(sql, values) for what, sql in _EXCESS.items()}
