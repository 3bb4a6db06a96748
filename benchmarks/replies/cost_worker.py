"""The part of cost.py for one version: it runs in that version's folder with its Python."""

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
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
PARTS = ("accept", "reply", "embedding")
FIGURES = ("messages to Postgres", "CPU ms", "ms")


def main() -> None:
    """Measure the given number of replies, and print the medians."""
    replies = int(sys.argv[1])
    throwaway.set_up()
    from django.db import connection

    import konstruct.orchestrator.tasks  # noqa: F401 (the worker of an earlier version finds them)
    from memory.models import Message
    from memory.tasks import embed_and_store
    from tenants.context import tenant_scope
    from tenants.tasks import work

    with throwaway.throwaway_tenant() as tenant_id:
        agent_id, _ = rest.prepare(tenant_id, 200)
        place = connection.settings_dict
        with counted(place["HOST"], int(place["PORT"] or 5432)) as (port, count):
            connection.close()
            place.update(HOST="127.0.0.1", PORT=port)
            place["OPTIONS"] = {**place["OPTIONS"], "sslmode": "disable"}
            send = rest.in_process(tenant_id, agent_id)["send"]
            figures: dict[str, list[float]] = {}
            for number in range(WARM_UP + replies):
                message = measured(figures, "accept", count, partial(send, number))[0]
                measured(figures, "reply", count, partial(work, "reply"))
                with tenant_scope(tenant_id):
                    reply = Message.objects.get(in_reply_to=message.id)
                ids = [str(message.id), str(reply.id)]
                measured(figures, "embedding", count, partial(embed_and_store, str(tenant_id), ids))
            connection.close()
    medians = {name: statistics.median(values[WARM_UP:]) for name, values in figures.items()}
    medians["CPU ms of all"] = sum(medians[f"CPU ms of {part}"] for part in PARTS)
    print(json.dumps(medians))


def measured(
    figures: dict[str, list[float]], part: str, count: Callable[[], int], do: Callable[[], Any]
) -> Any:
    """Do a part of a message, and add its figures."""
    before = count(), time.process_time(), time.perf_counter()
    done = do()
    after = count(), time.process_time(), time.perf_counter()
    for name, first, last in zip(FIGURES, before, after, strict=True):
        value = last - first if "Postgres" in name else 1000 * (last - first)
        figures.setdefault(f"{name} of {part}", []).append(value)
    return done


if __name__ == "__main__":
    main()
