"""What it costs to name the tenant with each statement: one read, by several ways, interleaved.

    python -m benchmarks.fleet.entering [--repeats 2000] [--delay 1ms]

The median of each in microseconds, and beside that of two messages, the way of before. As the
application's role, to the database of the settings; with a delay that a network would have, each
way.
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
    asked = parser.parse_args()
    set_up()
    with throwaway_tenant() as tenant_id, ExitStack() as stack:
        from django.db import connection

        if asked.delay:
            connection.close()
            place = connection.settings_dict
            port = stack.enter_context(delayed(place["HOST"], int(place["PORT"]), asked.delay))
            place.update(HOST="127.0.0.1", PORT=port)
        measure(tenant_id, asked.repeats)
        connection.close()


def milliseconds(text: str) -> float:
    """Read '1ms' as seconds."""
    return float(text.removesuffix("ms")) / 1000


def measure(tenant_id: Any, repeats: int) -> None:
    import psycopg

    from tenants.context import tenant_connection, tenant_scope

    with tenant_scope(tenant_id):
        ours = tenant_connection()
        ours.ensure_connection()
        plain: Any = ours.connection
        entering = [statement.decode() for statement in ours.entering]

        def no_tenant() -> None:
            with psycopg.ClientCursor(plain) as cursor:
                cursor.execute("SELECT 1 WHERE 'ada' = %s", ["ada"]).fetchall()

        def two_messages() -> None:
            """As before: settings of the session by a message of their own."""
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

        def backend() -> None:
            with ours.cursor() as cursor:
                cursor.execute(STATEMENT, ["ada"])
                cursor.fetchall()

        ways: list[Callable[[], None]] = [no_tenant, two_messages, drivers_pipeline, backend]
        taken: dict[str, list[float]] = {way.__name__: [] for way in ways}
        for _ in range(repeats):
            for way in ways:
                started = time.perf_counter()
                way()
                taken[way.__name__].append(1e6 * (time.perf_counter() - started))
        plain.execute("RESET search_path; RESET app.current_tenant")
    before = statistics.median(taken["two_messages"])
    for name, each in taken.items():
        median = statistics.median(each)
        sys.stdout.write(f"{name:17} {median:8.0f} µs {median / before:6.2f}\n")


if __name__ == "__main__":
    main()
