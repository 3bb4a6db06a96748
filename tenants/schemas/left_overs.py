"""Schemas of tenants on a server that is not theirs: of moves that were killed or not completed."""

from contextlib import suppress
from uuid import UUID

from django.db.models import Q

from tenants.context import public_scope, server_scope
from tenants.exceptions import SchemaBusy
from tenants.locking import schema_lock
from tenants.models import Tenant
from tenants.naming import schema_name_of
from tenants.postgres_tools import end_killed_restores, run, session_on, set_tenant
from tenants.postgresql.exceptions import ServerDown
from tenants.schemas.migration_state import schema_exists
from tenants.servers import servers

DROP_LOCK_TIMEOUT = "30s"


def drop_left_overs(tenant_id: UUID) -> int:
    """Drop the tenant's schemas on servers that are not its own. Needs the owner's role.

    Servers that are down, and servers of a running move, are left out.

    Returns:
        The number of schemas.
    """
    schema, dropped = schema_name_of(tenant_id), 0
    for server in servers() if len(servers()) > 1 else ():
        with suppress(ServerDown, SchemaBusy), server_scope(server):
            if not schema_exists(schema):
                continue
            # A move holds this lock on both of its servers.
            with schema_lock(schema, wait_seconds=0):
                is_here = Q(server=server) | Q(moving_to=server)
                with public_scope():
                    if Tenant.objects.filter(is_here, id=tenant_id).exists():
                        continue
                drop_left_over(tenant_id, server)
                dropped += 1
    return dropped


def drop_left_over(tenant_id: UUID, server: str) -> None:
    """Drop the tenant's schema, and its jobs, on a server. The caller holds the schema's lock."""
    schema = schema_name_of(tenant_id)
    with session_on(server) as session, session.transaction():
        end_killed_restores(session, schema)
        run(session, f"SET LOCAL lock_timeout = '{DROP_LOCK_TIMEOUT}'")
        run(session, f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        set_tenant(session, tenant_id)
        run(session, "DELETE FROM public.tenants_job WHERE tenant_id = %s", tenant_id)
