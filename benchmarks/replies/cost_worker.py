"""The part of cost.py for one version: it runs in that version's folder with its Python."""

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

# This script runs in the folder of another version, and is started by its path.
sys.path[0] = str(Path(__file__).resolve().parents[1] / "tools")
from of_version import first_of, use_version_in  # type: ignore[import-not-found] # noqa: E402

use_version_in(Path.cwd())
rest = first_of("benchmarks.serving.rest", "api")
counted = first_of("benchmarks.tools.proxies", "proxies").counted
throwaway = first_of("benchmarks.tools.throwaway", "throwaway")

WARM_UP = 10


def main() -> None:
    """Measure the given number of replies, and print the medians."""
    replies = int(sys.argv[1])
    throwaway.set_up()
    from django.db import connection

    from konstruct.orchestrator import pipeline

    with throwaway.throwaway_tenant() as tenant_id:
        agent_id, _ = rest.prepare(tenant_id, 200)
        place = connection.settings_dict
        with counted(place["HOST"], int(place["PORT"] or 5432)) as (port, count):
            connection.close()
            place.update(HOST="127.0.0.1", PORT=port)
            place["OPTIONS"] = {**place["OPTIONS"], "sslmode": "disable"}
            send = rest.in_process(tenant_id, agent_id)["send"]
            times: dict[str, list[float]] = {"messages to Postgres": [], "CPU ms": [], "ms": []}
            for number in range(WARM_UP + replies):
                sent: Any = send(number)
                message, _ = sent
                before = count(), time.process_time(), time.perf_counter()
                pipeline.handle(tenant_id=tenant_id, message_id=message.id)
                after = count(), time.process_time(), time.perf_counter()
                if number >= WARM_UP:
                    for name, first, last in zip(times, before, after, strict=True):
                        times[name].append((last - first) * (1 if "to" in name else 1000))
            connection.close()
    print(json.dumps({name: statistics.median(values) for name, values in times.items()}))


if __name__ == "__main__":
    main()
