"""Measure how long a single job waits while another tenant floods the outbox.

    python -m benchmarks.fleet.fairness [--flood 10000] [--others 50] [--workers 2]

One tenant has `--flood` jobs waiting. Then `--others` tenants enqueue one each. As many threads as
`--workers` claim, work for some milliseconds, and finish. The script prints the wait of the first,
the median and the last of the single jobs, in tasks of one worker, with turns and in FIFO order. It
also prints the median time of a claim with the flood and without.
"""

import argparse
import os
import statistics
import subprocess
import sys
import threading
import time
from typing import Any
from uuid import UUID, uuid4

from benchmarks.tools.throwaway import set_up, throwaway_tenant

SECONDS = 0.005
REMOVE = """
import sys
import django
django.setup()
from tenants.models import Tenant
from tenants.schemas.provisioning import delete_tenant
for tenant in Tenant.objects.filter(slug__in=sys.argv[1:]):
    delete_tenant(tenant)
"""


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flood", type=int, default=10_000, help="pieces of one tenant")
    parser.add_argument("--others", type=int, default=50, help="tenants with one piece each")
    parser.add_argument("--workers", type=int, default=2, help="threads that claim")
    arguments = parser.parse_args()
    set_up()
    from tenants.context import public_scope
    from tenants.models import Tenant

    with throwaway_tenant() as flooding:
        # The outbox needs no schema of these tenants.
        with public_scope():
            # Jobs of a tenant without all migrations are delayed.
            served = {"state": "active", "migrated_to": Tenant.objects.get(pk=flooding).migrated_to}
            others = [
                Tenant.objects.create(slug=f"fair-{uuid4().hex}", name="fair", **served)
                for _ in range(arguments.others)
            ]
        try:
            measure(flooding, [other.id for other in others], arguments.flood, arguments.workers)
        finally:
            owner = {**os.environ, "KONSTRUCT_DB_ROLE": "owner"}
            slugs = [other.slug for other in others]
            subprocess.run([sys.executable, "-c", REMOVE, *slugs], env=owner, check=True)


def measure(flooding: UUID, others: list[UUID], flood: int, workers: int) -> None:
    """Enqueue all jobs, and work until the single jobs are done."""
    from django.db import connection

    from tenants import jobs
    from tenants.context import tenant_scope

    kind = jobs.JobKind("fairness", "none", "none", 3, 1.0, 1.0)
    alone = statistics.median(_claims(kind, others))
    with tenant_scope(flooding), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO tenants_job (kind, key, sweep_at)"
            " SELECT 'fairness', gen_random_uuid(), now() FROM generate_series(1, %s)",
            [flood],
        )
    beside = statistics.median(_claims(kind, others))
    waiting = {tenant_id: _put(tenant_id) for tenant_id in others}
    waited: dict[UUID, int] = {}
    done, lock = [0], threading.Lock()

    def work() -> None:
        try:
            while len(waited) < len(waiting):
                claim = jobs.claim(kind)
                if claim is None:
                    return
                with lock:
                    if waiting.get(claim.tenant_id) == claim.key:
                        waited[claim.tenant_id] = done[0]
                time.sleep(SECONDS)
                with tenant_scope(claim.tenant_id):
                    kind.finish(claim.key)
                with lock:
                    done[0] += claim.tenant_id == flooding
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    before = sorted(count / workers for count in waited.values())
    print(f"{flood} pieces of one tenant, {len(others)} tenants with one, {workers} workers\n")
    print("tasks of the flooding tenant, per worker, before a single piece:")
    print(f"  by turns            first {before[0]:.1f}  median {statistics.median(before):.1f}"
          f"  last {before[-1]:.1f}")  # fmt: skip
    print(f"  in order of arrival {flood / workers:.1f}")
    print(f"a claim beside the flood, over one without: {beside / alone:.2f}")
    with tenant_scope(flooding), connection.cursor() as cursor:
        cursor.execute("DELETE FROM tenants_job WHERE kind = 'fairness'")


def _put(tenant_id: UUID) -> UUID:
    from django.utils import timezone

    from tenants.context import tenant_scope
    from tenants.models import Job

    key = uuid4()
    with tenant_scope(tenant_id):
        Job.objects.create(tenant_id=tenant_id, kind="fairness", key=key, sweep_at=timezone.now())
    return key


def _claims(kind: Any, others: list[UUID]) -> list[float]:
    """Return the seconds of claims, each of a single job or of a job of the flood."""
    from tenants import jobs

    for tenant_id in others:
        _put(tenant_id)
    seconds = []
    for _ in others:
        started = time.perf_counter()
        jobs.claim(kind)
        seconds.append(time.perf_counter() - started)
    return seconds


if __name__ == "__main__":
    main()
