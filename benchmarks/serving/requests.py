"""Measure the overhead of a request, and compare it with an earlier version.

    python -m benchmarks.serving.requests [--requests 300] [--stored 500] [--baseline ad96dc1]

Both versions run at once, each with its own requirements, Postgres, tenant and production server
(two processes), as `konstruct_app` with policies on. Rate limits are out of reach, and no worker
answers. They take turns: some requests to one, some to the other, and between them the same work
without HTTP in a process of that version.

search: `POST /memories/search/` compared with embedding and `recall`; send: `POST /messages/`
compared with `accept`; list: `GET /messages/?limit=50` compared with those rows. `messages` are
those to Postgres that wait for an answer. CPU time is that of one request, from one client that
keeps its connection.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.serving.rest import by_http, over, timed
from benchmarks.tools.earlier import BASELINE, Version, earlier_version, this_version

KINDS = ("search", "send", "list")
ROUNDS = 6
CLIENTS = 8
COUNTED = 20


@dataclass
class Side:
    """A running version."""

    version: Version
    process: "subprocess.Popen[str]"
    key: str = ""
    port: int = 0
    counted_port: int = 0
    figures: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def ask(self, **question: Any) -> dict[str, Any]:
        """Send a question, and return the answer."""
        assert self.process.stdin
        assert self.process.stdout
        if question:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.version.name} has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def note(self, kind: str, what: str, *values: float) -> None:
        """Record a measurement."""
        self.figures.setdefault((kind, what), []).extend(values)

    def median(self, kind: str, what: str) -> float:
        """Return the median of the measurements."""
        return statistics.median(self.figures[kind, what])

    def p95(self, kind: str, what: str) -> float:
        """Return the 95th percentile."""
        return statistics.quantiles(self.figures[kind, what], n=20, method="inclusive")[18]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=300, help="requests of each kind")
    parser.add_argument("--stored", type=int, default=500, help="stored messages of the user")
    parser.add_argument("--baseline", default=BASELINE, help="the version to compare with")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as running:
        sides = [
            running.enter_context(beginning(version, arguments.stored))
            for version in (earlier_version(arguments.baseline), this_version())
        ]
        for side in sides:
            vars(side).update(side.ask())
        for kind in KINDS:
            for side in sides:
                measure_messages(side, kind)
            measure(sides, kind, max(arguments.requests // ROUNDS, 10))
        report(sides)


@contextlib.contextmanager
def beginning(version: Version, stored: int) -> Iterator[Side]:
    """Start the processes of a version. They end with the block."""
    process = subprocess.Popen(
        [version.python, str(Path(__file__).with_name("requests_worker.py")), str(stored)],
        cwd=version.root,
        env=version.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Side(version, process)
    finally:
        assert process.stdin
        process.stdin.close()
        process.wait(120)


def measure_messages(side: Side, kind: str) -> None:
    """Count the messages to Postgres of a request, once connections and caches are warm."""
    work = over(side.counted_port, side.key, by_http(0)[kind])
    timed(work, COUNTED, 1)
    before = side.ask(ask="messages")["messages"]
    for number in range(COUNTED):
        work(number)
    after = side.ask(ask="messages")["messages"]
    side.note(kind, "messages", (after - before) / COUNTED)


def measure(sides: list[Side], kind: str, count: int) -> None:
    """Measure the versions in turns."""
    requests = {side.version.name: by_http(0)[kind] for side in sides}
    for number in range(ROUNDS + 1):
        for side in sides:
            within = side.ask(ask="in process", kind=kind, count=count)["milliseconds"]
            # A new connection: the server closes idle ones during the turns of the other version.
            work = over(side.port, side.key, requests[side.version.name])
            work(0)
            before = side.ask(ask="cpu")
            _, alone = timed(work, count, 1, warm_up=0)
            after = side.ask(ask="cpu")
            rate, together = timed(work, count, CLIENTS, warm_up=0)
            if number == 0:
                continue  # connections, caches and models are warm from here
            side.note(kind, "in process", *within)
            side.note(kind, "alone", *alone)
            side.note(kind, "together", *together)
            side.note(kind, "rate", rate)
            for what in ("web", "postgres"):
                side.note(kind, what, (after[what] - before[what]) / count * 1000)


def report(sides: list[Side]) -> None:
    """Print a table for each kind of request."""
    for kind in KINDS:
        print(f"\n{kind:34}" + "".join(f"{side.version.name:>10}" for side in sides) + "     ratio")
        for name, what, value in (
            ("in process, p50 ms", "in process", Side.median),
            ("HTTP, one client, p50 ms", "alone", Side.median),
            ("CPU ms of the web process", "web", Side.median),
            ("CPU ms of Postgres", "postgres", Side.median),
            ("messages to Postgres", "messages", Side.median),
            (f"{CLIENTS} clients, requests per second", "rate", Side.median),
            (f"{CLIENTS} clients, p95 ms", "together", Side.p95),
        ):
            line(name, [value(side, kind, what) for side in sides])
        alone, within = (
            [side.median(kind, what) for side in sides] for what in ("alone", "in process")
        )
        line("HTTP less in process, ms", [a - b for a, b in zip(alone, within, strict=True)])
        line("HTTP by in process", [a / b for a, b in zip(alone, within, strict=True)])


def line(name: str, values: list[float]) -> None:
    """Print a line, with the ratio of the last to the first."""
    figures = "".join(f"{value:10.2f}" for value in values)
    ratio = values[-1] / values[0] if values[0] else float("nan")
    print(f"  {name:32}{figures}{ratio:10.2f}", flush=True)


if __name__ == "__main__":
    main()
