"""Measure the cost of setting the tenant with each statement: one read, in several ways.

    python -m benchmarks.fleet.entering [--repeats 2000] [--delay 1ms]

The script prints the median of each in microseconds, for wall time and for the CPU time of this
process, beside that of two messages (the former way). It connects as the application role to the
database of the settings, with an optional network delay each way. `backend` keeps the connection of
the thread, `pool` takes one from a pool for each read, and `reconnect` opens one for each read.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from benchmarks.tools.proxies import delayed
from benchmarks.tools.throwaway import set_up, throwaway_tenant

REPEATS = 2000
STATEMENT = "SELECT id, name, model FROM orchestrator_agent WHERE name = %s LIMIT 5"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--delay", type=milliseconds, default=0.0, metavar="1ms")
    options = parser.parse_args()
    set_up()
    with throwaway_tenant() as tenant_id, ExitStack() as stack:
        from django.db import connection

        if options.delay:
            connection.close()
            place = connection.settings_dict
            port = stack.enter_context(delayed(place["HOST"], int(place["PORT"]), options.delay))
            place.update(HOST="127.0.0.1", PORT=port)
        measure(tenant_id, options.repeats)
        connection.close()


def milliseconds(text: str) -> float:
    """Read '1ms' as seconds."""
    return float(text.removesuffix("ms")) / 1000


def measure(tenant_id: Any, repeats: int) -> None:
    import psycopg

    from tenants.context import tenant_connection, tenant_scope
    from tenants.postgresql.pool import pool_options

    with tenant_scope(tenant_id):
        wrapper = tenant_connection()
        pooled = wrapper.copy("pooled")
        pooled.settings_dict.update(CONN_MAX_AGE=0, CONN_HEALTH_CHECKS=False)
        pooled.settings_dict["OPTIONS"]["pool"] = pool_options("pooled", 2, 600)
        reconnected = wrapper.copy()
        for copied in (pooled, reconnected):
            copied.set_schema(wrapper.schema_name)
        wrapper.ensure_connection()
        plain: Any = wrapper.connection
        entering = [statement.decode() for statement in wrapper.entering]

        def no_tenant() -> None:
            with psycopg.ClientCursor(plain) as cursor:
                cursor.execute("SELECT 1 WHERE 'ada' = %s", ["ada"]).fetchall()

        def two_messages() -> None:
            """Read in the former way: a separate message sets the session settings."""
            with psycopg.ClientCursor(plain) as cursor:
                cursor.execute("; ".join(entering).replace("SET LOCAL", "SET"))
                cursor.execute(STATEMENT, ["ada"]).fetchall()

        def drivers_pipeline() -> None:
            with plain.pipeline(), plain.cursor() as cursor:
                plain.execute("BEGIN")
                for statement in entering:
                    plain.execute(statement)
                cursor.execute(STATEMENT, ["ada"])
                plain.execute("COMMIT")
                cursor.fetchall()

        def read(django: Any) -> None:
            with django.cursor() as cursor:
                cursor.execute(STATEMENT, ["ada"])
                cursor.fetchall()

        def backend() -> None:
            read(wrapper)

        def pool() -> None:
            read(pooled)
            pooled.release()

        def reconnect() -> None:
            read(reconnected)
            reconnected.close()

        ways: list[Callable[[], None]] = [
            no_tenant, two_messages, drivers_pipeline, backend, pool, reconnect,
        ]  # fmt: skip
        durations: dict[str, list[tuple[float, float]]] = {way.__name__: [] for way in ways}
        for _ in range(repeats):
            for way in ways:
                started, worked = time.perf_counter(), time.process_time()
                way()
                wall, cpu = time.perf_counter() - started, time.process_time() - worked
                durations[way.__name__].append((wall, cpu))
        plain.execute("RESET search_path; RESET app.current_tenant")
        pooled.close_pool()
    medians = {
        name: [1e6 * statistics.median(times) for times in zip(*measured, strict=True)]
        for name, measured in durations.items()
    }
    wall_before, cpu_before = medians["two_messages"]
    for name, (wall, cpu) in medians.items():
        sys.stdout.write(
            f"{name:17} {wall:8.0f} µs {wall / wall_before:6.2f}"
            f"   CPU {cpu:6.0f} µs {cpu / cpu_before:6.2f}\n"
        )


if __name__ == "__main__":
    main()
