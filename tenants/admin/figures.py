"""Figures of tenants for operators: sizes and jobs, in two queries for each server, and problems.

No row of a tenant is read: sizes are Postgres' statistics, and jobs are counted by a function that
names no job.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from tenants.context import fetch_all, server_scope
from tenants.models import Tenant
from tenants.outages import ServerDown
from tenants.schemas.migration_state import is_fitting
from tenants.servers import servers

# Rows are Postgres' running estimate, and bytes those of the last vacuum or analyze of each table:
# pg_total_relation_size loads the definition of each table and index into the session, which took
# 13 s for a page of 100 tenants in a new session, and 1.3 s in the next request.
# The view of the statistics of rows reads those of all tables of all tenants: with 224 tenants
# three times as long.
_SIZES = """
SELECT n.nspname,
       sum(current_setting('block_size')::bigint
           * (c.relpages + coalesce(long_values.relpages, 0)))::bigint,
       coalesce(sum(pg_stat_get_live_tuples(c.oid)) FILTER (
           WHERE c.relname = 'memory_message'), 0)::bigint,
       coalesce(sum(pg_stat_get_live_tuples(c.oid)) FILTER (
           WHERE c.relname = 'orchestrator_agent'), 0)::bigint,
       coalesce(sum(pg_stat_get_live_tuples(c.oid)) FILTER (
           WHERE c.relname IN ('memory_conversationembedding', 'memory_memoryentry')), 0)::bigint,
       max(greatest(pg_stat_get_lastscan(c.oid), (
           SELECT max(pg_stat_get_lastscan(i.indexrelid)) FROM pg_index AS i
           WHERE i.indrelid = c.oid))) FILTER (WHERE c.relname = 'memory_message')
FROM pg_namespace AS n JOIN pg_class AS c ON c.relnamespace = n.oid
LEFT JOIN pg_class AS long_values ON long_values.oid = c.reltoastrelid
WHERE n.nspname = ANY (%s)
GROUP BY n.nspname
"""
_BACKLOGS = "SELECT tenant_id, waiting, failed, oldest FROM public.job_backlogs()"


@dataclass(frozen=True, slots=True)
class Size:
    """The size of one schema."""

    bytes: int = 0
    """Of tables and indexes, as of the last vacuum or analyze of each."""
    messages: int = 0
    agents: int = 0
    memories: int = 0
    last_activity: datetime | None = None
    """When its messages were last read, which each message does; since Postgres counts."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Jobs of a tenant: how many wait and have failed, and since when the oldest is due."""

    waiting: int = 0
    failed: int = 0
    oldest: datetime | None = None


def sizes_of(tenants: Iterable[Tenant]) -> dict[str, Size]:
    """Return the sizes of tenants by schema name, with one query for each server.

    A schema that does not exist, or whose server is down, is missing.
    """
    schemas_by_server: dict[str, list[str]] = defaultdict(list)
    for tenant in tenants:
        schemas_by_server[tenant.server].append(tenant.schema_name)
    sizes: dict[str, Size] = {}
    for server, schema_names in schemas_by_server.items():
        with suppress(ServerDown), server_scope(server):
            sizes |= {name: Size(*numbers) for name, *numbers in fetch_all(_SIZES, [schema_names])}
    return sizes


def backlogs(of_servers: Iterable[str] = ()) -> tuple[dict[UUID, Backlog], list[str]]:
    """Return the jobs of all tenants that have some, with one query for each server.

    Returns:
        The jobs by tenant, and the servers that are down.
    """
    found: dict[UUID, Backlog] = {}
    down = []
    for server in set(of_servers) or servers():
        try:
            with server_scope(server):
                found |= {tenant_id: Backlog(*rest) for tenant_id, *rest in fetch_all(_BACKLOGS)}
        except ServerDown:
            down.append(server)
    return found, sorted(down)


def add_figures(tenants: list[Any]) -> None:
    """Set `size`, `backlog` and `is_down` (whether its server is down) of each tenant."""
    sizes = sizes_of(tenants)
    waiting, down = backlogs({tenant.server for tenant in tenants}) if tenants else ({}, [])
    for tenant in tenants:
        tenant.size = sizes.get(tenant.schema_name, Size())
        tenant.backlog = waiting.get(tenant.pk, Backlog())
        tenant.is_down = tenant.server in down


def tenants_with_most(
    backlogs: dict[UUID, Backlog], key: Callable[[Backlog], Any], limit: int
) -> list[UUID]:
    """Return the ids of the tenants with the largest values of a key, without zero values."""
    tenant_ids = [tenant_id for tenant_id, backlog in backlogs.items() if key(backlog)]
    return sorted(tenant_ids, key=lambda tenant_id: key(backlogs[tenant_id]), reverse=True)[:limit]


def attention_context(request: HttpRequest) -> dict[str, Any]:
    """Return the problems that tenants have, each with its list, for users who may see tenants."""
    if not request.user.has_perm("tenants.view_tenant"):
        return {}
    tenants = Tenant.objects.all()
    jobs, down = backlogs()
    problems = (
        (_("To be migrated"), tenants.provisioned().exclude(is_fitting()).count(), "schema=behind"),
        (
            _("Could not be set up or migrated"),
            tenants.exclude(provisioning_error="").count(),
            "schema=failed",
        ),
        (_("Jobs that wait"), sum(of.waiting for of in jobs.values()), "jobs=waiting"),
        (_("Jobs that were given up"), sum(of.failed for of in jobs.values()), "jobs=failed"),
        (
            _("At a limit of a quota"),
            tenants.serving().with_reached_quotas().count(),
            "quota=reached",
        ),
        (
            _("To be deleted"),
            tenants.filter(deletion_asked_at__isnull=False).count(),
            "state__exact=suspended",
        ),
    )
    states = tenants.aggregate(
        all=Count("pk"), active=Count("pk", filter=Q(state=Tenant.State.ACTIVE))
    )
    found = [problem for problem in problems if problem[1]]
    return {"problems": found, "down": down, "tenants": states}
