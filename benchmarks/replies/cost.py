"""Measure the cost of a message without its language model, in this and an earlier version.

    python -m benchmarks.replies.cost [--replies 100] [--baseline ad96dc1]

Each version runs in its own process with its own requirements, Postgres and Valkey, one after the
other, as `konstruct_app` with policies on. The message is accepted in process, a worker claims it,
the built-in responder answers, and both turns are embedded. The script counts messages to Postgres
that wait for an answer, including locks. CPU time is that of the process, without Postgres; other
load on the machine changes it little.
"""

import argparse
import json
import subprocess
from pathlib import Path

from benchmarks.tools.earlier import BASELINE, Version, earlier_version, this_version


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replies", type=int, default=100)
    parser.add_argument("--baseline", default=BASELINE, help="the version to compare with")
    arguments = parser.parse_args()
    versions = [earlier_version(arguments.baseline), this_version()]
    measured = [of_version(version, arguments.replies) for version in versions]
    print(
        f"{'a message, median':34}"
        + "".join(f"{version.name:>10}" for version in versions)
        + "     ratio"
    )
    for name in measured[0]:
        values = [times[name] for times in measured]
        figures = "".join(f"{value:10.2f}" for value in values)
        print(f"  {name:32}{figures}{values[-1] / values[0]:10.2f}")


def of_version(version: Version, replies: int) -> dict[str, float]:
    """Measure with the Python of a version."""
    done = subprocess.run(
        [version.python, str(Path(__file__).with_name("cost_worker.py")), str(replies)],
        cwd=version.root,
        env=version.environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


if __name__ == "__main__":
    main()
