"""Privileges of the application's role beyond its tables, from Postgres' catalogue."""

from typing import Any, Final

from tenants.roles import APP_ROLE

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
        "note_recalled",
        "renew_worker",
        "return_expired_jobs",
        "try_tenant_lock",
        "wait_for_tenant_lock",
    }
)
# They have no side effects, but read what other sessions send, or run text.
_REVEALING_FUNCTIONS: Final = r"^((table|schema|database)_to_xml|pg_stat_get_(backend_)?activity$)"

_CALLABLE = """
    SELECT DISTINCT p.proname FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE (p.provolatile = 'v' OR p.proname ~ %(revealing)s)
      AND p.prorettype NOT IN
          ('trigger'::regtype, 'event_trigger'::regtype, 'language_handler'::regtype)
      AND NOT 'internal'::regtype = ANY (p.proargtypes::oid[])
      AND has_schema_privilege(%(role)s, n.oid, 'USAGE')
      AND has_function_privilege(%(role)s, p.oid, 'EXECUTE')
      AND p.proname <> ALL (%(allowed)s)
    ORDER BY p.proname
"""
_OTHER = """
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


def unsafe_privileges(cursor: Any) -> list[str]:
    """Return functions and commands by which injected SQL could enter a tenant or harm others."""
    values = {
        "role": APP_ROLE,
        "allowed": list(ALLOWED_FUNCTIONS),
        "revealing": _REVEALING_FUNCTIONS,
    }
    found: list[str] = []
    for statement in (_CALLABLE, _OTHER):
        cursor.execute(statement, values)
        found += [name for (name,) in cursor.fetchall()]
    return found
