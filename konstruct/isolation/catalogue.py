"""Checks of roles, policies and grants of all tenants in the catalogue of Postgres."""

from collections.abc import Iterator

from konstruct.isolation.attempts import Attempt, Layer
from tenants.checks.connections import unsafe_role_reason
from tenants.checks.privileges import excess_privileges, shorten, unsafe_privileges
from tenants.context import connection, server_scope
from tenants.naming import SCHEMA_PATTERN
from tenants.schemas.rls_enforcement import unprotected_relations
from tenants.servers import MAIN, servers


def check_catalogues() -> Iterator[Attempt]:
    """Check the catalogue of each server on the application's connection."""
    for server in servers():
        with server_scope(server):
            yield from _check_catalogue("" if server == MAIN else f" on {server}")


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
