"""Measure the cost of the job states of /metrics in Postgres, with and without an index.

    python -m benchmarks.load.job_states [--jobs 300000] [--tenants 100]

The script fills the job table of its own Postgres, and prints the CPU time of Postgres, which
varies less on a busy machine than wall time.
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from functools import partial
from uuid import uuid4

import psutil
import psycopg

from benchmarks.tools.throwaway import manage, set_up

REPEATS, WRITTEN = 20, 20_000
FILL = """
INSERT INTO tenants_job (tenant_id, kind, key, due_at, sweep_at)
SELECT ('00000000-0000-4000-8000-' || lpad(to_hex(number %% %(tenants)s), 12, '0'))::uuid,
       (ARRAY['reply', 'embedding', 'delivery', 'extraction'])[1 + number / %(tenants)s %% 4],
       gen_random_uuid(), now() - random() * interval '1 hour', now()
FROM generate_series(1, %(jobs)s) AS number
"""
INDEX = """
CREATE INDEX measured ON tenants_job (tenant_id, kind)
INCLUDE (due_at, leased_until, held_for, failed_at, sweep_at)
"""
ONE_JOB = (
    "INSERT INTO tenants_job (tenant_id, kind, key) VALUES (%(tenant)s, 'reply', %(key)s)",
    "UPDATE tenants_job SET attempts = 1, begun_at = now(), lease = lease + 1, worker = %(key)s,"
    " leased_until = now() + interval '1 minute', sweep_at = now() + interval '1 minute'"
    " WHERE tenant_id = %(tenant)s AND kind = 'reply' AND key = %(key)s",
    "DELETE FROM tenants_job WHERE tenant_id = %(tenant)s AND kind = 'reply' AND key = %(key)s",
)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=300_000)
    parser.add_argument("--tenants", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="konstruct-jobs-") as home:
        os.environ["KONSTRUCT_HOME"] = home
        set_up()
        from konstruct.local import embedded, services

        embedded.ensure()
        try:
            manage("migrate")
            with psycopg.connect(services.database_url("superuser"), autocommit=True) as owner:
                owner.execute("SET synchronous_commit = off")  # waiting is no CPU time
                owner.execute(FILL, vars(options))
                measure(owner, services.database_url("app"))
        finally:
            embedded.stop()


def measure(owner: "psycopg.Connection[tuple[object, ...]]", url: str) -> None:
    """Print a line without the index, with it, and with index scans enforced."""
    from konstruct.metrics import _JOBS
    from tenants.admin.tenants import _BACKLOGS

    print(f"  {'ms of CPU time':24}{'by kind':>10}{'by tenant':>11}{'a job':>9}")
    for name in ("without an index", "with an index", "with the index forced"):
        owner.execute(INDEX if name == "with an index" else "SELECT")
        owner.execute("VACUUM ANALYZE tenants_job")
        with psycopg.connect(url, autocommit=True) as reader:
            reader.execute("SET max_parallel_workers_per_gather = 0")
            if name.endswith("forced"):
                reader.execute("SET enable_seqscan = off")
                reader.execute("SET enable_bitmapscan = off")
            reads = [cpu_ms(reader, partial(reader.execute, sql)) for sql in (_JOBS, _BACKLOGS)]
        written = cpu_ms(owner, lambda: write_jobs(owner), repeats=1) / WRITTEN
        print(f"  {name:24}{reads[0]:10.0f}{reads[1]:11.0f}{written:9.3f}", flush=True)


def write_jobs(owner: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Enqueue, lease and finish jobs."""
    tenant = uuid4()
    for _ in range(WRITTEN):
        values = {"tenant": tenant, "key": uuid4()}
        with owner.transaction():
            for statement in ONE_JOB:
                owner.execute(statement, values)


def cpu_ms(
    connection: "psycopg.Connection[tuple[object, ...]]",
    work: Callable[[], object],
    repeats: int = REPEATS,
) -> float:
    """Return the CPU time of the connection's backend for the work, in milliseconds."""
    process = psutil.Process(connection.info.backend_pid)
    before = process.cpu_times()
    for _ in range(repeats):
        work()
    after = process.cpu_times()
    spent = after.user + after.system - before.user - before.system
    return 1000 * spent / repeats


if __name__ == "__main__":
    main()
