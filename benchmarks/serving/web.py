"""Measure the effect of waiting clients on other requests.

    python -m benchmarks.serving.web [--waiting 1000] [--half-open 200] [--requests 300]

The server runs as deployed (deploy/gunicorn.conf.py). Rate limits are out of reach, and no worker
answers.

Ordinary requests are sent by one client and by eight that keep their connections. Then a crowd
connects: clients that wait a minute for a reply (`GET …?wait=60`), and clients that sent half of
their headers, half of a body, or that never read a long response.
`/health/live` and a list are requested before, during and after the crowd, each time on a new
connection. `lost` requests had no answer within five seconds.
"""

import argparse
import contextlib
import http.client
import itertools
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psutil

from benchmarks.serving.rest import LIMITS, by_http, in_process, over, prepare, timed
from benchmarks.tools.throwaway import PROJECT, set_up, throwaway_tenant

LOST_SECONDS = 5
MAX_LOST = 5
REQUEST_COUNT = 100
LIVE = "/health/live"


@dataclass(frozen=True)
class Server:
    """The server."""

    port: int
    process: psutil.Process

    def size(self) -> str:
        """Return threads and memory of its processes, and the distribution of connections."""
        workers = self.process.children()
        threads = sum(worker.num_threads() for worker in workers)
        memory = sum(worker.memory_full_info().pss for worker in workers) / 2**20
        connections = [len(worker.net_connections("tcp")) - 1 for worker in workers]
        return f"{threads} threads, {memory:.0f} MB, connections {connections}"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--waiting", type=int, default=1000, help="callers that wait for a reply")
    parser.add_argument("--half-open", type=int, default=200, help="clients that stop half-way")
    parser.add_argument("--requests", type=int, default=300, help="ordinary requests of each kind")
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    set_up()
    with throwaway_tenant() as tenant_id:
        agent_id, key = prepare(tenant_id, 200)
        sent: Any = in_process(tenant_id, agent_id)["send"](0)
        with serving() as server:
            ordinary(server, key, arguments.requests)
            crowd(server, key, sent[0].id, arguments.waiting, arguments.half_open)


def ordinary(server: Server, key: str, count: int) -> None:
    """Print the times of ordinary requests."""
    print(f"{'':22} {'per s':>8} {'p50 ms':>8} {'p95 ms':>8}")
    for kind, clients in itertools.product(("list", "send", "search"), (1, 8)):
        work = over(server.port, key, by_http(count)[kind])
        rate, milliseconds = timed(work, count, clients)
        print(f"{kind + f', {clients} clients':22} {rate:8.0f} {_cuts(milliseconds)}")


def crowd(server: Server, key: str, message_id: object, waiting: int, half_open: int) -> None:
    """Print the times of a health check and a list without and with a crowd."""
    print(f"\n{server.size()}")
    ask(server, key, "alone")
    with contextlib.ExitStack() as here:
        for number in range(half_open):
            here.enter_context(_stopping_half_way(server.port, key, number))
        for _ in range(waiting):
            client = here.enter_context(_connection(server.port))
            client.sendall(_request(f"/api/v1/messages/{message_id}/?wait=60", key) + b"\r\n")
        ask(server, key, "they come", count=REQUEST_COUNT // 4)
        ask(server, key, f"{waiting} wait")
        print(f"{'':14} {server.size()}")
    ask(server, key, "they are gone")


def ask(server: Server, key: str, when: str, count: int = REQUEST_COUNT) -> None:
    """Request health and a list in turn, and print the times."""
    for path in (LIVE, "/api/v1/messages/?limit=1"):
        took: list[float] = []
        requests = 0
        while requests < count and requests - len(took) < MAX_LOST:
            requests += 1
            start = time.perf_counter()
            if _answers(server.port, path, key):
                took.append((time.perf_counter() - start) * 1000)
        figures = _cuts(took) if len(took) > 1 else ""
        print(
            f"{when:14} {path:28} {figures:26} {requests - len(took)} of {requests} lost",
            flush=True,
        )


def _stopping_half_way(port: int, key: str, number: int) -> socket.socket:
    client = _connection(port)
    if number % 3 == 0:
        client.sendall(b"GET /api/v1/messages/ HTTP/1.1\r\nHost: localhost\r\nX-Half: ")
    elif number % 3 == 1:
        body = b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
        client.sendall(_request("/api/v1/messages/", key, "POST") + body)
    else:
        client.sendall(_request("/api/v1/messages/?limit=50", key) + b"\r\n")
    return client


def _connection(port: int) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    return client


def _request(path: str, key: str, method: str = "GET") -> bytes:
    return (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n".encode()
    )


def _answers(port: int, path: str, key: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LOST_SECONDS)
    try:
        connection.request(
            "GET", path, headers={"Host": "localhost", "Authorization": f"Bearer {key}"}
        )
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _cuts(milliseconds: list[float]) -> str:
    cuts = statistics.quantiles(milliseconds, n=100, method="inclusive")
    return f"{cuts[49]:8.2f} {cuts[94]:8.2f} {max(milliseconds):8.2f}"


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """Run the server during the block. The block begins when the models are loaded."""
    from konstruct.processes import bound_to_this_process

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    process = psutil.Popen(
        [sys.executable, "-m", "gunicorn", "--config", "deploy/gunicorn.conf.py"],
        cwd=PROJECT,
        env={**os.environ, **LIMITS, "PORT": str(port), "KONSTRUCT_HOST": "127.0.0.1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=bound_to_this_process(signal.SIGTERM),
    )
    try:
        ready = 0
        while ready < 20:  # in a row: both processes answered
            ready = ready + 1 if _answers(port, "/health/ready", "") else 0
            time.sleep(0 if ready else 0.2)
        yield Server(port, process)
    finally:
        process.terminate()
        process.wait(60)


if __name__ == "__main__":
    main()
