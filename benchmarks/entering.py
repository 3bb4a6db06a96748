"""What it costs to name the tenant with each statement: one read, by several ways, interleaved.

    python benchmarks/entering.py [repeats]

The median of each in microseconds. As the application's role, to the database of the settings.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from throwaway import set_up, throwaway_tenant

REPEATS = 2000
STATEMENT = "SELECT id, name, model FROM orchestrator_agent WHERE name = %s LIMIT 5"


def main() -> None:
    set_up()
    with throwaway_tenant() as tenant_id:
        measure(tenant_id, int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS)


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
    for name, each in taken.items():
        sys.stdout.write(f"{name:17} {statistics.median(each):8.0f} µs\n")


if __name__ == "__main__":
    main()
