"""The endpoint /metrics of a process, and the gauges that are read at a scrape.

It has its own address (METRICS_ADDRESS), which no proxy serves, and returns the counts of all
processes that share METRICS_DIR. Only the worker of sweeps adds states of Postgres and the cache:
some queries for each server, which are repeated after STATES_SECONDS, or later if they are slow.
"""

import logging
import threading
import time
from collections import Counter
from itertools import product
from typing import Any, Final

from django.conf import settings
from django.db import connections
from prometheus_client import exposition
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from psycopg.errors import QueryCanceled

from konstruct.heartbeats import BEAT, OWNER, QUEUES, WEB, has_heartbeat
from konstruct.orchestrator.identities import channel_identities, erasure_requests  # noqa: F401
from tenants import transaction
from tenants.audit import tombstones  # noqa: F401
from tenants.context import connection, fetch_all, fetch_value, public_scope, server_scope
from tenants.jobs import KINDS
from tenants.limits.quotas import Quota
from tenants.metrics import Metric, gauge, registry
from tenants.models import Tenant
from tenants.outages import OUTAGES, outage_reason
from tenants.schemas.migrating import is_fitting
from tenants.servers import servers

logger = logging.getLogger(__name__)

# Prometheus scrapes every 15 seconds; more frequent requests get the same states.
STATES_SECONDS: Final = 5.0
# A read takes a connection for at most this fraction of the time: the queries count all jobs.
STATES_PAUSE_FACTOR: Final = 20
# Limit of a query. Without its result the gauges of the server's jobs are missing.
QUERY_TIMEOUT_SECONDS: Final = 5

# KINDS has those of the owner's worker too, since their three modules are imported here.
_SERVERS: Final = tuple(servers())
SERVER_UP: Final = gauge(
    "konstruct_server_up", "Whether a Postgres server answers: 1 or 0.", server=_SERVERS
)
CACHE_UP: Final = gauge("konstruct_cache_up", "Whether the cache answers: 1 or 0.")
PROCESS_UP: Final = gauge(
    "konstruct_process_up",
    "Whether a process of this kind was active within 30 seconds: 1 or 0.",
    process=(WEB, *QUEUES, BEAT, OWNER),
)
WAITING: Final = gauge(
    "konstruct_jobs_waiting",
    "Jobs that wait, also those that are repeated later.",
    server=_SERVERS,
    kind=KINDS,
)
IN_WORK: Final = gauge(
    "konstruct_jobs_in_work", "Jobs that a worker has leased.", server=_SERVERS, kind=KINDS
)
OLDEST: Final = gauge(
    "konstruct_jobs_oldest_seconds",
    "Wait of the oldest due job that no worker has leased; 0 without one.",
    server=_SERVERS,
    kind=KINDS,
)
GIVEN_UP: Final = gauge(
    "konstruct_jobs_given_up", "Jobs that failed for good, and wait for a person.", server=_SERVERS
)
TENANTS: Final = gauge("konstruct_tenants", "Tenants by state.", state=tuple(Tenant.State.values))
BEHIND: Final = gauge(
    "konstruct_tenants_behind", "Tenants that are not served until `migrate` has run."
)
QUOTAS_REACHED: Final = gauge(
    "konstruct_quotas_reached",
    "Tenants that had reached a limit at the last measurement.",
    quota=Quota.values,
    level=("soft", "hard"),
)
LAST_BACKUP: Final = gauge(
    "konstruct_last_backup_age_seconds",
    "Age of the oldest last backup of a tenant, without one from its creation.",
)

# Read with the index of claims. Failed jobs are not visible outside of their tenants.
_JOBS = """
SELECT kind, count(*) FILTER (WHERE leased_until IS NULL OR leased_until < statement_timestamp()),
       count(*) FILTER (WHERE leased_until >= statement_timestamp()),
       coalesce(extract(epoch FROM statement_timestamp() - min(due_at) FILTER (
           WHERE due_at <= statement_timestamp()
             AND (leased_until IS NULL OR leased_until < statement_timestamp()))), 0)::float
FROM tenants_job WHERE failed_at IS NULL AND sweep_at IS NOT NULL AND held_for = ''
GROUP BY kind
"""


class States(Collector):
    """Gauges of the current, or recently read, states of Postgres and the cache."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._families: dict[str, GaugeMetricFamily] = {}
        self._until = 0.0

    def collect(self) -> list[GaugeMetricFamily]:
        """Return all gauges. Those of a server that is down are missing."""
        with self._lock:
            if time.monotonic() >= self._until:
                started, self._families = time.monotonic(), {}
                try:
                    self._read()
                finally:
                    connections.close_all()  # those of this thread, which ends
                now = time.monotonic()
                self._until = now + max(STATES_SECONDS, STATES_PAUSE_FACTOR * (now - started))
            return list(self._families.values())

    def _add(self, metric: Metric, value: float, **labels: str) -> None:
        family = GaugeMetricFamily(metric.name, metric.text, labels=list(metric.labels))
        values = metric.bound_labels(labels).values()
        self._families.setdefault(metric.name, family).add_metric(list(values), value)

    def _read(self) -> None:
        for server in _SERVERS:
            try:
                jobs, given_up = read_jobs(server)
            except OUTAGES as error:
                logger.warning("Metrics lack the server %s: %s", server, outage_reason(error))
                # A server that cancels a slow query is up.
                self._add(SERVER_UP, isinstance(error.__cause__, QueryCanceled), server=server)
                continue
            self._add(SERVER_UP, 1, server=server)
            self._add(GIVEN_UP, given_up, server=server)
            for kind in KINDS:
                numbers = jobs.get(kind, (0, 0, 0))
                for metric, number in zip((WAITING, IN_WORK, OLDEST), numbers, strict=True):
                    self._add(metric, number, server=server, kind=kind)
        try:
            self._read_tenants()
        except OUTAGES as error:
            logger.warning("Metrics lack the tenants: %s", outage_reason(error))
        try:
            alive = {process: has_heartbeat(process) for process in PROCESS_UP.labels["process"]}
        except OUTAGES:
            self._add(CACHE_UP, 0)
        else:
            self._add(CACHE_UP, 1)
            for process, is_alive in alive.items():
                self._add(PROCESS_UP, is_alive, process=process)

    def _read_tenants(self) -> None:
        """Count tenants by their states, and those that need attention."""
        with public_scope():
            states = Counter(Tenant.objects.values_list("state", flat=True))
            behind = Tenant.objects.provisioned().exclude(is_fitting()).count()
            oldest = Tenant.objects.provisioned().oldest_backup()
            reached = Tenant.objects.serving().with_reached_quotas()
            levels = Counter(
                (quota, limit["level"])
                for limits in reached.values_list("usage__reached", flat=True)
                for quota, limit in limits.items()
            )
        for name in Tenant.State.values:
            self._add(TENANTS, states[name], state=name)
        self._add(BEHIND, behind)
        self._add(LAST_BACKUP, time.time() - oldest.timestamp() if oldest else 0)
        for quota, level in product(*QUOTAS_REACHED.labels.values()):
            self._add(QUOTAS_REACHED, levels[quota, level], quota=quota, level=level)


def read_jobs(server: str) -> tuple[dict[str, list[Any]], int]:
    """Read the jobs of a server.

    Returns:
        By kind: how many wait, how many run, and for how many seconds the oldest due one has
        waited; and the number of jobs that were given up.

    Raises:
        ServerDown: the server takes no connections.
    """
    with server_scope(server), transaction.atomic():
        connection.set_local({"statement_timeout": f"{int(1000 * QUERY_TIMEOUT_SECONDS)}ms"})
        jobs = {kind: numbers for kind, *numbers in fetch_all(_JOBS)}
        return jobs, fetch_value("SELECT coalesce(sum(failed), 0) FROM public.job_backlogs()")


def serve(*, with_states: bool = False) -> None:
    """Serve /metrics in a thread, if METRICS_ADDRESS is set.

    If the address is in use, the process works on, and logs an error.

    Args:
        with_states: include the gauges of Postgres and the cache.
    """
    if settings.METRICS_ADDRESS is None:
        return
    host, port = settings.METRICS_ADDRESS
    # The processes of gunicorn share the port: each returns the same counts.
    exposition.ThreadingWSGIServer.allow_reuse_port = True
    try:
        exposition.start_http_server(port, host, registry(*([States()] if with_states else [])))
    except OSError as error:
        logger.error("No metrics at METRICS_ADDRESS: %s", error)  # noqa: TRY400
