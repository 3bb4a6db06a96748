"""Checks that tenants are kept apart.

Of connections: their role, a pooler before them, and room to write. A web or worker process ends at
its start if it could mix tenants. And Django's system checks: declarations, and with
`manage.py check --database default` Postgres.
"""

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final, NoReturn, cast
from uuid import uuid4

from django.conf import settings
from django.core import checks
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, OperationalError, connections
from django.db.backends.signals import connection_created

from tenants import context, operations, outages, personal_data, transaction
from tenants.naming import APP_ROLE, SCHEMA_PATTERN
from tenants.postgresql.base import DatabaseWrapper
from tenants.servers import MAIN, cache_server, servers

logger = logging.getLogger(__name__)

# gunicorn ends at this status instead of restarting the worker for ever.
CANNOT_BOOT: Final = 3

# Servers that were down at the start of this process.
_unchecked_servers: set[str] = set()

# Ways in which the connection's role could bypass row-level security; no rows: none. A member of
# an owning role can become it. Login roles are checked too, because SET ROLE can be undone.
_UNSAFE = """
    SELECT rolname || CASE WHEN rolsuper THEN ' is a superuser' ELSE ' has BYPASSRLS' END
    FROM pg_roles
    WHERE (rolsuper OR rolbypassrls) AND rolname IN (current_user, session_user)
    UNION ALL
    SELECT session_user || ' owns, or is a member of the role that owns, tenants'' tables'
    WHERE EXISTS (
        SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p')
          AND (n.nspname ~ %s OR n.nspname = 'public' AND c.relname = 'tenants_tenant')
          AND (pg_has_role(session_user, c.relowner, 'MEMBER')
               OR pg_has_role(current_user, c.relowner, 'MEMBER'))
    )
"""


def unsafe_role_reason() -> str:
    """Return the reason why the connection's role could bypass the policies; "" if it cannot."""
    # Superusers have every role: several reasons, of which the first is returned.
    return context.fetch_value(_UNSAFE, [SCHEMA_PATTERN]) or ""


def unsafe_pooler_reason() -> str:
    """Return the reason why a pooler could mix tenants; "" if it cannot, or if there is none.

    It sets the id of a tenant that does not exist: every statement of the block must see it, in
    whichever session it runs, and the next statement must not.
    """
    connection = context.tenant_connection()
    if not connection.is_pooled:
        return ""
    nobody = uuid4()
    cache_server(nobody, connection.alias)
    try:
        with context.tenant_scope(nobody):
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
    found: tuple[int, str] = context.fetch_row(
        "SELECT pg_backend_pid(), coalesce(current_setting('app.current_tenant', true), '')"
    )
    return found


# Sorts more rows than fit into work_mem, so Postgres writes a temporary file of a megabyte. Like an
# INSERT this fails when the disk is full. It takes some milliseconds, needs no table, and leaves no
# file. A standby or read-only server reports transaction_read_only.
_SPILL = """
SELECT current_setting('transaction_read_only')
FROM (SELECT count(*) FROM (SELECT n FROM generate_series(1, 20000) AS n ORDER BY -n) AS sorted)
"""


def require_writable(server: str = DEFAULT_DB_ALIAS) -> None:
    """Open a new connection to a server, and have it write a temporary file.

    Raises:
        OperationalError: the server takes no connection, or refuses the login.
        NotWritable: it has no space left, or is read-only.
    """
    with closing(cast(DatabaseWrapper, connections[server].copy())) as probe:
        probe.set_autocommit(False)
        try:
            probe.set_local({"work_mem": "64kB"})
            with probe.cursor() as cursor:
                cursor.execute(_SPILL)
                is_read_only = cursor.fetchone() != ("off",)
        except DatabaseError as error:
            raise outages.NotWritable(outages.outage_reason(error)) from error
    if is_read_only:
        raise outages.NotWritable("transaction_read_only is on")


def refuse_unsafe_role() -> None:
    """End a web or worker process that could mix tenants on any server, with one line as reason.

    A server that is down is checked at the first connection to it.
    """
    for server in servers():
        try:
            with context.server_scope(server):
                _refuse_if_unsafe()
        except (OperationalError, InterfaceError) as error:
            logger.warning(
                "The database server %r is not in use yet: %s", server, outages.outage_reason(error)
            )
            _unchecked_servers.add(server)
            connection_created.connect(_check_on_connect)


def _check_on_connect(connection: DatabaseWrapper, **_: Any) -> None:
    """Check a server that was down at the start, before its first use."""
    if connection.alias in _unchecked_servers:
        try:
            with context.server_scope(connection.alias):
                _refuse_if_unsafe()
        except SystemExit:  # would end only this thread
            os._exit(CANNOT_BOOT)
        _unchecked_servers.discard(connection.alias)


def _refuse_if_unsafe() -> None:
    server = context.current_server()
    setting = "DATABASE_URL" if server == MAIN else f"TENANT_DATABASES ({server})"
    # First: a pooler in statement mode refuses the transaction of the other check.
    if reason := unsafe_pooler_reason():
        _refuse_to_serve(
            f"behind the connection pooler of {setting} {reason}. Let it pool by transaction"
            " (PgBouncer: pool_mode = transaction), or name Postgres itself"
        )
    if reason := unsafe_role_reason():
        _refuse_to_serve(
            f"the database role {reason}, so row-level security does not bind it. Connect as"
            f" {APP_ROLE} ({setting})"
        )


def _refuse_to_serve(why: str) -> NoReturn:
    sys.stderr.write(f"konstruct: refusing to serve: {why}.\n")
    raise SystemExit(CANNOT_BOOT)


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
        "array_sample", "array_shuffle", "clock_timestamp", "gen_random_uuid", "pg_database_size",
        "pg_indexes_size", "pg_is_in_recovery", "pg_relation_size", "pg_table_size",
        "pg_total_relation_size", "plpgsql_validator", "random", "random_normal", "timeofday",
        "uuidv4", "uuidv7",
        # Konstruct's own functions of the owner: tenants/migrations/0001_initial.py.
        "give_back_jobs", "held_tenant_locks", "renew_worker", "return_expired_jobs",
        "try_tenant_lock", "wait_for_tenant_lock",
    }
)  # fmt: skip
# They have no side effects, but read what other sessions send, or run text.
_REVEALING_FUNCTIONS: Final = r"^((table|schema|database)_to_xml|pg_stat_get_(backend_)?activity$)"

_UNSAFE_PRIVILEGES = """
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
    "api_creation", "audit_accessevent", "audit_erasurerequest", "audit_messageerasure",
    "memory_conversationembedding", "memory_indexedmessage", "memory_message",
    "memory_messageattribute", "memory_posting", "memory_promptsource", "memory_recallevent",
    "memory_scope", "memory_windowclear",
)  # fmt: skip

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
        for label in personal_data.models_without_declaration()
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
            with context.server_scope(server):
                found += _check_server()
        except (outages.NotWritable, *outages.OUTAGES) as error:
            found.append(
                checks.Error(
                    f"Postgres {server} takes no writes: {outages.outage_reason(error)}",
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
    with context.tenant_connection().cursor() as cursor:
        relations = operations.unprotected_relations(cursor, SCHEMA_PATTERN)
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
    with context.tenant_connection().cursor() as cursor:
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
    logging = [
        f"{name} = {setting}" for name, setting in context.fetch_all(_CONTENT_LOGGING_SETTINGS)
    ]
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
    cursor.execute(_UNSAFE_PRIVILEGES, values)
    return [name for (name,) in cursor.fetchall()]


def excess_privileges() -> dict[str, list[str]]:
    """Return the privileges on the current server that the application's role must not have.

    Returns:
        The names that were found, which should be none, by the description of the check.
    """
    values = {"app": APP_ROLE, "schemas": SCHEMA_PATTERN, "append_only": list(APPEND_ONLY)}
    return {what: context.fetch_column(sql, values) for what, sql in _EXCESS.items()}
