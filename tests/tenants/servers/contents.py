"""The rows of a tenant on a server, read by a superuser, for whom no policy applies."""

import psycopg
from django.conf import settings

from tenants.models import Tenant
from tenants.moving.rows import quoted, row_digests, run, sequences_of, tables_of
from tenants.servers import MAIN
from tests import database
from tests.servers.postgres import Server


def contents(tenant: Tenant, server: str, schema: str = "") -> dict[str, object]:
    """Return all rows by table, the state of each sequence, and the outbox; empty without any."""
    url = database.url_of("superuser") if server == MAIN else Server(server).url("superuser")
    schema = schema or tenant.schema_name
    with psycopg.connect(url, options="-c timezone=UTC") as session:
        if run(session, "SELECT to_regnamespace(%s) IS NULL", schema) == [(True,)]:
            return {}
        found: dict[str, object] = {
            table.name.split(".")[1]: row_digests(session, table)
            for table in tables_of(session, schema)
        }
        for name in sequences_of(session, schema):
            found[name] = run(session, f"SELECT last_value, is_called FROM {quoted(schema, name)}")
        found["outbox"] = run(
            session,
            "SELECT kind, key, attempts, due_at, failed_at FROM tenants_job"
            " WHERE tenant_id = %s ORDER BY kind, key",
            tenant.id,
        )
        return found


def where(tenant: Tenant) -> dict[str, dict[str, object]]:
    """Return the rows of the tenant on each server that has its schema."""
    names = [MAIN, *settings.TENANT_DATABASES]
    return {name: found for name in names if (found := contents(tenant, name))}
