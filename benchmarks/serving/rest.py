"""Measure search, send and list by HTTP, and the same work in process.

    python -m benchmarks.serving.rest [--stored 1000] [--requests 300]

The server is gunicorn as deployed (two processes), as `konstruct_app` with policies on. Rate limits
are out of reach, and no worker answers. Clients keep their connection. They share the machine with
the server, so with 8 clients the limit is the machine.

search: `POST /memories/search/` compared with `recall`; send: `POST /messages/` compared with
`accept`; list: `GET /messages/?limit=50` compared with the same 50 rows with the names of their
agents. With one client, the difference to the work in process is the overhead of the API: HTTP,
key, rate limit, checks, access log, JSON.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from benchmarks.replies.pipeline import sentence, store
from benchmarks.tools.throwaway import PROJECT, set_up, throwaway_tenant

WARM_UP = 20
PAGE = 50
USER = "user"
LIMITS = {
    f"{prefix}RATE_LIMIT_{what}": "1000000000"
    for prefix in ("", "KEY_")
    for what in ("BURST", "PER_SECOND")
}
Work = Callable[[int], object]
Request = tuple[str, str, dict[str, Any] | None]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stored", type=int, default=1000, help="stored messages of the user")
    parser.add_argument("--requests", type=int, default=300, help="requests that are timed")
    arguments = parser.parse_args()
    set_up()
    with throwaway_tenant() as tenant_id:
        agent_id, key = prepare(tenant_id, arguments.stored)
        works, requests = in_process(tenant_id, agent_id), by_http(arguments.requests)
        print(f"{arguments.stored} stored messages, {arguments.requests} requests of each kind")
        print(f"{'':8} {'':22} {'per s':>8} {'p50 ms':>8} {'p95 ms':>8} {'p99 ms':>8}")
        with serving() as port:
            for name in ("search", "send", "list"):
                report(name, "in process", *timed(works[name], arguments.requests, 1))
                for clients in (1, 8):
                    work = over(port, key, requests[name])
                    report(
                        name, f"HTTP, {clients} clients", *timed(work, arguments.requests, clients)
                    )


def prepare(tenant_id: UUID, stored: int) -> tuple[UUID, str]:
    """Create an agent, a key, and a transcript with its embeddings."""
    from konstruct.api.auth.keys import issue_key
    from konstruct.orchestrator.agents import create_agent
    from memory import indexing

    agent = create_agent(tenant_id=tenant_id, name="ada", system_prompt="You are Ada.")
    _, key = issue_key(tenant_id=tenant_id, name="benchmark")
    store(tenant_id, agent.id, USER, stored, random.Random(0))
    while indexing.drain(tenant_id).more:
        pass
    send = in_process(tenant_id, agent.id)["send"]
    for number in range(PAGE):
        send(number)
    return agent.id, str(key)


def in_process(tenant_id: UUID, agent_id: UUID) -> dict[str, Work]:
    """Return the work of the API's views without HTTP."""
    from konstruct.api.http.views import agent_names
    from konstruct.orchestrator.agents import find_agent
    from konstruct.orchestrator.pipeline.accept import Incoming, accept
    from konstruct.orchestrator.replies import progress_of, sent_messages
    from memory.recall import recall
    from tenants.context import tenant_scope

    chance = random.Random(1)

    def search(number: int) -> object:
        with tenant_scope(tenant_id):
            agent = find_agent("ada")
        return recall(tenant_id, agent_id, USER, sentence(chance), policy=agent.recall_policy)

    def send(number: int) -> object:
        with tenant_scope(tenant_id):
            find_agent("ada", active=True)
        incoming = Incoming(agent_id, USER, USER, "rest", sentence(chance))
        return accept(incoming, tenant_id=tenant_id)

    def listed(number: int) -> object:
        with tenant_scope(tenant_id):
            rows = list(sent_messages().order_by("-created_at", "-number")[: PAGE + 1])
            return agent_names(row.agent_id for row in rows), [progress_of(row) for row in rows]

    return {"search": search, "send": send, "list": listed}


def by_http(count: int) -> dict[str, Iterator[Request]]:
    """Yield the same as requests, without end."""
    chance = random.Random(2)
    about = {"agent": "ada", "user_id": USER}
    return {
        "search": (
            ("POST", "/api/v1/memories/search/", {**about, "query": sentence(chance)})
            for _ in itertools.count()
        ),
        "send": (
            ("POST", "/api/v1/messages/", {**about, "content": sentence(chance)})
            for _ in itertools.count()
        ),
        "list": itertools.repeat(("GET", f"/api/v1/messages/?limit={PAGE}", None)),
    }


def over(port: int, key: str, requests: Iterator[Request]) -> Work:
    """Send the next request on the connection of the thread."""
    local, taking = threading.local(), threading.Lock()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def send(number: int) -> object:
        with taking:
            method, path, body = next(requests)
        if not hasattr(local, "connection"):
            local.connection = http.client.HTTPConnection("localhost", port)
        data = None if body is None else json.dumps(body)
        local.connection.request(method, path, data, headers)
        response = local.connection.getresponse()
        answer = response.read()
        if response.status >= 300:
            sys.exit(f"{method} {path}: {response.status} {answer!r}")
        return answer

    return send


def timed(
    work: Work, count: int, clients: int, *, warm_up: int = WARM_UP
) -> tuple[float, list[float]]:
    """Run a function repeatedly in several threads. Return runs a second, and milliseconds."""
    for number in range(warm_up):
        work(number)
    milliseconds: list[float] = []
    numbers = iter(range(count))
    taking = threading.Lock()

    def client() -> None:
        while True:
            with taking:
                number = next(numbers, None)
            if number is None:
                return
            start = time.perf_counter()
            work(number)
            milliseconds.append((time.perf_counter() - start) * 1000)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    start = time.perf_counter()
    if clients == 1:
        client()  # in this thread, which has open connections
    else:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return count / (time.perf_counter() - start), milliseconds


def report(name: str, how: str, per_second: float, milliseconds: list[float]) -> None:
    """Print a line."""
    cuts = statistics.quantiles(milliseconds, n=100, method="inclusive")
    figures = " ".join(f"{cuts[percent - 1]:8.2f}" for percent in (50, 95, 99))
    print(f"{name:8} {how:22} {per_second:8.0f} {figures}")


@contextlib.contextmanager
def serving() -> Iterator[int]:
    """Run the production server during the block. Yield the port."""
    from konstruct.processes import bound_to_this_process

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "--config", "deploy/gunicorn.conf.py"],
        cwd=PROJECT,
        env={**os.environ, **LIMITS, "PORT": str(port), "KONSTRUCT_HOST": "127.0.0.1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=bound_to_this_process(signal.SIGTERM),
    )
    try:
        while not _answers(port):
            time.sleep(0.2)
        yield port
    finally:
        server.terminate()
        server.wait(30)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("localhost", port, timeout=5)
    try:
        connection.request("GET", "/health/live")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    main()
