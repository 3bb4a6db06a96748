"""How large tenants are, for operators: from Postgres' own books, without reading any row."""

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from tenants.context import server_scope, tenant_connection
from tenants.models import Tenant
from tenants.postgresql.exceptions import ServerDown

# Rows are Postgres' running estimate, which is near enough and costs nothing.
_SIZES = """
SELECT n.nspname, count(*), coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint,
       coalesce(sum(s.n_live_tup) FILTER (WHERE c.relname = 'memory_message'), 0)::bigint,
       coalesce(sum(s.n_live_tup) FILTER (WHERE c.relname = 'orchestrator_agent'), 0)::bigint
FROM pg_namespace AS n JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p')
LEFT JOIN pg_stat_all_tables AS s ON s.relid = c.oid
WHERE n.nspname = ANY (%s)
GROUP BY n.nspname
"""


@dataclass(frozen=True, slots=True)
class Size:
    """What one schema holds."""

    tables: int = 0
    bytes: int = 0
    messages: int = 0
    agents: int = 0


def sizes_of(tenants: Iterable[Tenant]) -> dict[str, Size]:
    """The sizes of tenants by the names of their schemas, in one query for each server.

    None of a schema that is not there, or whose server is down.
    """
    on: dict[str, list[str]] = defaultdict(list)
    for tenant in tenants:
        on[tenant.server].append(tenant.schema_name)
    found: dict[str, Size] = {}
    for server, schema_names in on.items():
        with suppress(ServerDown), server_scope(server), tenant_connection().cursor() as cursor:
            cursor.execute(_SIZES, [schema_names])
            found |= {name: Size(*numbers) for name, *numbers in cursor.fetchall()}
    return found
