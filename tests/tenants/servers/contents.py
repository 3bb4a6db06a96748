"""The rows of a tenant on a server, read by a superuser, for whom no policy applies."""

import psycopg
from django.conf import settings

from tenants.models import Tenant
from tenants.postgres_tools import quoted, run
from tenants.servers import MAIN
from tests import database
from tests.servers.postgres import Server

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = %s"


def contents(tenant: Tenant, server: str) -> dict[str, object]:
    """Return all rows by table, the state of each sequence, and the outbox; empty without any."""
    url = database.url_of("superuser") if server == MAIN else Server(server).url("superuser")
    with psycopg.connect(url, options="-c timezone=UTC") as session:
        found: dict[str, object] = {}
        for (name,) in run(session, TABLES, tenant.schema_name):
            table = quoted(tenant.schema_name, name)
            found[name] = sorted(run(session, f"SELECT t::text FROM {table} AS t"))
        if not found:
            return {}
        for name, value in run(
            session,
            "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = %s",
            tenant.schema_name,
        ):
            found[name] = value
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
