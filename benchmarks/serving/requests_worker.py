"""The part of requests.py for one version: a tenant, a server, and the same work in process.

`requests.py` starts this script with that version's Python in that version's folder. The benchmark
of REST in that folder has the names of that version. Each input line is a question in JSON, and
each output line is its answer.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlencode

import psutil

# This script runs in the folder of another version, and is started by its path.
sys.path[0] = str(Path(__file__).resolve().parents[1] / "tools")
from of_version import first_of, use_version_in  # type: ignore[import-not-found] # noqa: E402

use_version_in(Path.cwd())
rest = first_of("benchmarks.serving.rest", "api")
counted = first_of("benchmarks.tools.proxies", "proxies").counted
throwaway = first_of("benchmarks.tools.throwaway", "throwaway")


def main() -> None:
    """Start the server, and answer questions until the input ends."""
    stored = int(sys.argv[1])
    throwaway.set_up()
    with throwaway.throwaway_tenant() as tenant_id:
        agent_id, key = rest.prepare(tenant_id, stored)
        works = rest.in_process(tenant_id, agent_id)
        with rest.serving() as port, counted_server() as (counted_port, count):
            say({"key": key, "port": port, "counted_port": counted_port})
            for line in sys.stdin:
                question = json.loads(line)
                if question["ask"] == "in process":
                    say(timed(works[question["kind"]], question["count"]))
                elif question["ask"] == "cpu":
                    say(cpu_seconds(port))
                else:
                    say({"messages": count()})


@contextlib.contextmanager
def counted_server() -> Iterator[tuple[int, Any]]:
    """A second server, whose messages to Postgres are counted."""
    from django.db import connection

    place = connection.settings_dict
    with (
        counted(place["HOST"], int(place["PORT"] or 5432)) as (port, count),
        contextlib.ExitStack() as running,
    ):
        options = urlencode({"sslmode": "disable", **place["OPTIONS"]})
        url = f"postgresql://{place['USER']}@127.0.0.1:{port}/{place['NAME']}?{options}"
        with mock.patch.dict(os.environ, {"DATABASE_URL": url, "DEBUG": "1"}):
            server = running.enter_context(rest.serving())
        yield server, count


def timed(work: Any, count: int) -> dict[str, Any]:
    """Call the function so often. Return the milliseconds of each call."""
    milliseconds = []
    for number in range(count):
        start = time.perf_counter()
        work(number)
        milliseconds.append((time.perf_counter() - start) * 1000)
    return {"milliseconds": milliseconds}


def cpu_seconds(port: int) -> dict[str, float]:
    """Return the CPU seconds so far of the web processes of that port and of this Postgres."""
    web = postgres = 0.0
    home = Path(os.environ["KONSTRUCT_HOME"]).resolve()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            used = times.user + times.system
            variables = process.environ()
            # Each process of this Postgres has the data directory as its working directory. Ended
            # sessions are counted as children of the postmaster.
            if process.name() == "postgres" and Path(process.cwd()).is_relative_to(home):
                postgres += used + times.children_user + times.children_system
            elif variables.get("PORT") == str(port):
                web += used
    return {"web": web, "postgres": postgres}


def say(answer: dict[str, Any]) -> None:
    """Write an answer as one line."""
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
