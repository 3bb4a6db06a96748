"""Checks of roles, policies and grants of all tenants in the catalogue of Postgres."""

from collections.abc import Iterator
from typing import Final

from konstruct.isolation.attempts import Attempt, Layer
from tenants.checks.connections import unsafe_role_reason
from tenants.checks.privileges import unsafe_privileges
from tenants.context import connection, server_scope
from tenants.naming import SCHEMA_PATTERN
from tenants.roles import APP_ROLE
from tenants.schemas.rls_enforcement import unprotected_relations
from tenants.servers import MAIN, servers

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
    "memory_recallevent",
    "memory_scope",
    "memory_windowclear",
)
MAX_SHOWN = 5

_CHECKS = {
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
        "SELECT n.nspname || '.' || c.relname FROM pg_class AS c"
        " JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname ~ %(schemas)s AND c.relname = ANY(%(append_only)s)"
        " AND (has_table_privilege(%(app)s, c.oid, 'UPDATE, DELETE')"
        " OR has_any_column_privilege(%(app)s, c.oid, 'UPDATE'))"
    ),
    "the role may empty, refer to or watch a table": (
        "SELECT n.nspname || '.' || c.relname FROM pg_class AS c"
        " JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname ~ %(schemas)s AND c.relkind IN ('r', 'p')"
        " AND has_table_privilege(%(app)s, c.oid, 'TRUNCATE, REFERENCES, TRIGGER')"
    ),
    "everybody may use a table": (
        "SELECT n.nspname || '.' || c.relname FROM pg_class AS c"
        " JOIN pg_namespace AS n ON n.oid = c.relnamespace, aclexplode(c.relacl) AS acl"
        " WHERE n.nspname ~ %(schemas)s AND acl.grantee = 0"
    ),
    "new tables or functions will be open to everybody": (
        "SELECT defaclrole::regrole::text FROM pg_default_acl, aclexplode(defaclacl) AS acl"
        " WHERE acl.grantee = 0"
    ),
    "a function or view runs with its owner's rights": (
        "SELECT p.proname FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace"
        " WHERE n.nspname ~ %(schemas)s AND p.prosecdef UNION ALL"
        " SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname ~ %(schemas)s AND c.relkind IN ('v', 'm')"
    ),
}


def check_catalogues() -> Iterator[Attempt]:
    """Check the catalogue of each server on the application's connection."""
    for server in servers():
        with server_scope(server):
            yield from _check_catalogue("" if server == MAIN else f" on {server}")


def excess_privileges() -> dict[str, list[str]]:
    """Return the privileges on the current server that the application's role must not have.

    Returns:
        The names that were found, which should be none, by the description of the check.
    """
    with connection.cursor() as cursor:
        names_by_check = {}
        for what, sql in _CHECKS.items():
            cursor.execute(
                sql, {"app": APP_ROLE, "schemas": SCHEMA_PATTERN, "append_only": list(APPEND_ONLY)}
            )
            names_by_check[what] = [name for (name,) in cursor.fetchall()]
    return names_by_check


def shorten(names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
    return ", ".join(names[:MAX_SHOWN]) + more


def _check_catalogue(where: str) -> Iterator[Attempt]:
    with connection.cursor() as cursor:
        reason = unsafe_role_reason()
        names_by_check = {
            (Layer.ROLE, "the role could bypass policies"): [reason] if reason else [],
            (Layer.ROLE, "SQL could enter a tenant, or harm all"): unsafe_privileges(cursor),
            (Layer.POLICY, "a tenant's table has no forced policy"): [
                f"{relation.schema}.{relation.name}"
                for relation in unprotected_relations(cursor, SCHEMA_PATTERN)
            ],
        }
    names_by_check |= {(Layer.ROLE, what): names for what, names in excess_privileges().items()}
    for (layer, what), names in names_by_check.items():
        outcome = shorten(names) or "none"
        yield Attempt(layer, "catalogue", what + where, bool(names), outcome)
