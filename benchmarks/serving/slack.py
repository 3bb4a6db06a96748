"""Measure how fast the production server acknowledges events of Slack.

    python -m benchmarks.serving.slack [--events 1000] [--at-once 50]

The server is gunicorn as deployed (two processes), as `konstruct_app` with policies on, and no
worker processes the inbox. Each event is a mention: its signature, its workspace, the rate limit,
and the row in the inbox. `again` repeats one event. Slack waits for three seconds; the goal is a
p99 below 200 ms with 50 events at once. The sender shares the machine with the server.

`50 at once` sends fifty, waits until all are answered, and sends the next. `without end` always has
fifty requests in flight, so it measures the throughput of the machine.
"""

import argparse
import contextlib
import http.client
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from benchmarks.serving.rest import report, serving, timed
from benchmarks.tools.throwaway import set_up, throwaway_tenant

WORKSPACE = "TBENCHMARK"


def main() -> None:
    """Run the benchmark."""
    from tests.servers.slack import SIGNING_SECRET, mention

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1000, help="events that are timed")
    parser.add_argument("--at-once", type=int, default=50, help="events that are under way")
    arguments = parser.parse_args()
    os.environ["SLACK_SIGNING_SECRET"] = SIGNING_SECRET
    set_up()
    with throwaway_tenant() as tenant_id:
        connect_workspace(tenant_id)
        again = mention(WORKSPACE, "This comes again and again.", channel="C0")
        print(f"{arguments.events} events")
        print(f"{'':8} {'':22} {'per s':>8} {'p50 ms':>8} {'p95 ms':>8} {'p99 ms':>8}")
        with serving() as port:
            works = {
                "new": sending(port, lambda number: mention(WORKSPACE, f"Number {number}.")),
                "again": sending(port, lambda number: again),
            }
            for name, work in works.items():
                timed(work, arguments.events, arguments.at_once)  # connections of all threads
                report(name, "one by one", *timed(work, arguments.events, 1))
                report(
                    name,
                    f"{arguments.at_once} at once",
                    *in_bursts(work, arguments.events, arguments.at_once),
                )
                report(
                    name,
                    f"{arguments.at_once} without end",
                    *timed(work, arguments.events, arguments.at_once),
                )


def in_bursts(work: Callable[[int], object], count: int, at_once: int) -> tuple[float, list[float]]:
    """Run the function repeatedly in concurrent groups, and wait for each group."""
    milliseconds: list[float] = []

    def one(number: int) -> None:
        ready.wait()
        start = time.perf_counter()
        work(number)
        milliseconds.append((time.perf_counter() - start) * 1000)

    begun = time.perf_counter()
    with ThreadPoolExecutor(at_once) as threads:
        for first in range(0, count, at_once):
            ready = threading.Barrier(at_once)
            list(threads.map(one, range(first, first + at_once)))
    return len(milliseconds) / (time.perf_counter() - begun), milliseconds


def connect_workspace(tenant_id: UUID) -> None:
    """Create an agent, and connect it to a workspace."""
    from konstruct.channels.slack.installations import connect
    from konstruct.orchestrator.agents import create_agent

    agent = create_agent(tenant_id=tenant_id, name="ada")
    connect(
        tenant_id=tenant_id,
        agent_id=agent.id,
        workspace=WORKSPACE,
        bot_user_id="UBOT",
        token="xoxb-benchmark",  # noqa: S106  (of nobody's)
        by="benchmark",
    )


def sending(port: int, event: Callable[[int], object]) -> Callable[[int], object]:
    """Send events as Slack does, each on its own connection."""
    from tests.servers.slack import signed

    def send(number: int) -> object:
        body = json.dumps(event(number)).encode()
        headers = {**signed(body), "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", port)
        with contextlib.closing(connection):
            connection.request("POST", "/channels/slack/events/", body, headers)
            response = connection.getresponse()
            answer = response.read()
        if response.status != 200:
            sys.exit(f"{response.status} {answer!r}")
        return answer

    return send


if __name__ == "__main__":
    main()
