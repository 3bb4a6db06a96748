"""Stored rows: counts of all tables, and the tenant of a workspace."""

from uuid import UUID

from tenants.context import fetch_value, tenant_connection
from tenants.personal_data import PUBLIC, tables_of
from tenants.serving import find_claim


def row_counts(*, without: tuple[str, ...] = ()) -> dict[str, int]:
    """Return the number of rows of each non-empty table of the current tenant.

    Args:
        without: tables that may change.
    """
    connection = tenant_connection()
    with connection.cursor() as cursor:
        tables = [
            f'"{schema}"."{table}"'
            for schema in (connection.schema_name, PUBLIC)
            for table in tables_of(cursor, schema)
            if table not in without
            and fetch_value("SELECT has_table_privilege(%s, 'SELECT')", [f'"{schema}"."{table}"'])
        ]
    return {table: fetch_value(f"SELECT count(*) FROM {table}") for table in tables}


def tenant_of_workspace(channel: str, workspace: str) -> UUID | None:
    """Return the tenant that has claimed the workspace."""
    claim = find_claim(channel, workspace)
    return None if claim is None else claim.tenant_id
