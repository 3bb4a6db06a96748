"""Privileges that the application's role must not have, by Postgres' catalogue."""

from typing import Any, Final

from tenants.context import fetch_column
from tenants.naming import APP_ROLE, SCHEMA_PATTERN

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
