"""What a reply costs without its language model, beside the same reply of an earlier version.

    python benchmarks/replies.py [--replies 100] [--baseline ad96dc1]

Each version works in a process of its own, with its own requirements, Postgres and Valkey, one
after the other, as `konstruct_app` with policies on. The built-in responder answers. Messages are
those to Postgres that wait for an answer, locks among them. CPU is the worker's: other work on the
machine changes it little.
"""

import argparse
import json
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from earlier import BASELINE, Version, earlier_version, this_version

WARM_UP = 10


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replies", type=int, default=100)
    parser.add_argument("--baseline", default=BASELINE, help="the version to compare with")
    arguments = parser.parse_args()
    versions = [earlier_version(arguments.baseline), this_version()]
    measured = [of_version(version, arguments.replies) for version in versions]
    print(
        f"{'a reply, median':32}" + "".join(f"{each.name:>10}" for each in versions) + "     ratio"
    )
    for name in measured[0]:
        values = [each[name] for each in measured]
        figures = "".join(f"{value:10.2f}" for value in values)
        print(f"  {name:30}{figures}{values[-1] / values[0]:10.2f}")


def of_version(version: Version, replies: int) -> dict[str, float]:
    """Let a version's own Python measure."""
    ours = str(Path(__file__).parent)
    # Its own modules come first; what it lacks is ours.
    code = f"import sys; sys.path[:1] = ['benchmarks', {ours!r}]; import replies; "
    done = subprocess.run(
        [version.python, "-c", f"{code} replies.here({replies})"],
        cwd=version.root,
        env=version.environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def here(replies: int) -> None:
    """Measure the version that we are in, and print the medians."""
    import api
    from counting import counted
    from throwaway import set_up, throwaway_tenant

    set_up()
    from django.db import connection

    from konstruct.orchestrator import pipeline

    with throwaway_tenant() as tenant_id:
        agent_id, _ = api.prepare(tenant_id, 200)
        place = connection.settings_dict
        with counted(place["HOST"], int(place["PORT"] or 5432)) as (port, count):
            connection.close()
            place.update(HOST="127.0.0.1", PORT=port)
            place["OPTIONS"] = {**place["OPTIONS"], "sslmode": "disable"}
            send = api.in_process(tenant_id, agent_id)["send"]
            taken: dict[str, list[float]] = {"messages to Postgres": [], "CPU ms": [], "ms": []}
            for number in range(WARM_UP + replies):
                sent: Any = send(number)
                message, _ = sent
                before = count(), time.process_time(), time.perf_counter()
                pipeline.handle(tenant_id=tenant_id, message_id=message.id)
                after = count(), time.process_time(), time.perf_counter()
                if number >= WARM_UP:
                    for name, first, last in zip(taken, before, after, strict=True):
                        taken[name].append((last - first) * (1 if "to" in name else 1000))
            connection.close()
    print(json.dumps({name: statistics.median(values) for name, values in taken.items()}))


if __name__ == "__main__":
    main()
