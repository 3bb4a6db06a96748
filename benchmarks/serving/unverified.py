"""Measure how requests without a valid key slow down the searches of a tenant.

    python -m benchmarks.serving.unverified [--searches 100] [--connections 60] [--per-second 300]

The server is gunicorn as deployed (two processes), with the default limits for requests without a
verified key. The limits of the tenant are out of reach. A client of the tenant searches, one
request after the other, in turns without and with an attack:

- description: `/api/schema/` from one address
- hosts: the same, each request with another port in its Host header
- tenants: the same, each request with a key of another tenant that does not exist
- keys: made-up keys of the tenant itself, each request with another
- addresses: made-up keys of the tenant, each connection from an address of its own

The searches have keys that the server knows. `first` is the time of the first request of a new key
from a new address. Attackers share the machine with the server and send at most --per-second
requests. The last column shows the answers to them.
"""

import argparse
import asyncio
import contextlib
import http.client
import itertools
import json
import multiprocessing
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

from benchmarks.serving.rest import USER, prepare, serving, timed
from benchmarks.tools.throwaway import set_up, throwaway_tenant

ATTACKS = ("description", "hosts", "tenants", "keys", "addresses")
STORED = 200
ROUNDS = 5


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--searches", type=int, default=100, help="searches of each kind")
    parser.add_argument("--connections", type=int, default=60, help="connections of an attack")
    parser.add_argument("--attacks", nargs="+", choices=ATTACKS, default=ATTACKS)
    parser.add_argument("--per-second", type=int, default=300, help="requests of an attack")
    arguments = parser.parse_args()
    set_up()
    with throwaway_tenant() as tenant_id:
        _, key = prepare(tenant_id, STORED)
        with serving() as port:
            timed(lambda number: search(port, key), 20, 1)
            print(f"{'':12} {'p50 ms':>8} {'p95 ms':>8} {'ratio':>6} {'first ms':>9}  attackers")
            for attack in arguments.attacks:
                compare(arguments, attack, tenant_id, port, key)


def compare(
    arguments: argparse.Namespace,
    attack: str,
    tenant_id: UUID,
    port: int,
    key: str,
) -> None:
    """Print the searches without and with an attack, in turns."""
    quiet: list[float] = []
    attacked: list[float] = []
    first: list[float] = []
    answers: Counter[str] = Counter()
    count = max(arguments.searches // ROUNDS, 1)
    for number in range(ROUNDS):
        quiet += timed(lambda number: search(port, key), count, 1, warm_up=1)[1]
        with attacking(arguments, attack, tenant_id, port, answers):
            attacked += timed(lambda number: search(port, key), count, 1, warm_up=1)[1]
            first.append(first_request(tenant_id, port, f"127.0.3.{number + 1}"))
    ratio = statistics.median(attacked) / statistics.median(quiet)
    print(f"{'quiet':12} {_cuts(quiet)}")
    counts = ", ".join(f"{status}: {times}" for status, times in sorted(answers.items()))
    print(
        f"{attack:12} {_cuts(attacked)} {ratio:6.2f} {statistics.median(first):9.1f}  {counts}",
        flush=True,
    )


def first_request(tenant_id: UUID, port: int, address: str) -> float:
    """Return the milliseconds of the first search of a key that the server does not know."""
    from konstruct.api.auth.keys import issue_key

    _, key = issue_key(tenant_id=tenant_id, name="new")
    start = time.perf_counter()
    search(port, str(key), address)
    return (time.perf_counter() - start) * 1000


def search(port: int, key: str, address: str = "127.0.0.1") -> None:
    """Search on a new connection from this address."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=120, source_address=(address, 0)
    )
    body = json.dumps({"agent": "ada", "user_id": USER, "query": "tea"})
    headers = {
        "Host": "localhost",
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
    }
    with contextlib.closing(connection):
        connection.request("POST", "/api/v1/memories/search/", body, headers)
        response = connection.getresponse()
        response.read()
    assert response.status == 200, response.status


@contextlib.contextmanager
def attacking(
    arguments: argparse.Namespace,
    attack: str,
    tenant_id: UUID,
    port: int,
    answers: "Counter[str]",
) -> Iterator[None]:
    """Attack from another process during the block. Count the answers."""
    spawn = multiprocessing.get_context("spawn")
    connection, child_connection = spawn.Pipe()
    process_arguments = (
        attack,
        tenant_id.hex,
        port,
        arguments.connections,
        arguments.per_second,
        child_connection,
    )
    process = spawn.Process(target=attacker, args=process_arguments, daemon=True)
    process.start()
    connection.recv()  # all connections are busy
    try:
        yield
    finally:
        connection.send("enough")
        answers.update(connection.recv())
        process.join()


def attacker(
    attack: str, tenant: str, port: int, connections: int, per_second: int, pipe: Any
) -> None:
    """Send requests over the given number of connections, until the event is set."""
    asyncio.run(_attack(requests(attack, tenant), attack, port, connections, per_second, pipe))


async def _attack(
    sent: Iterator[bytes], attack: str, port: int, connections: int, per_second: int, pipe: Any
) -> None:
    answers: Counter[str] = Counter()

    async def client(number: int) -> None:
        address = f"127.0.2.{number + 1}" if attack == "addresses" else "127.0.2.1"
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await converse(address)

    async def converse(address: str) -> None:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, local_addr=(address, 0), limit=2**20
        )
        with contextlib.closing(writer):
            while True:
                start = time.perf_counter()
                writer.write(next(sent))
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                answers[head[9:12].decode()] += 1
                if b"transfer-encoding: chunked" in head:
                    await reader.readuntil(b"\r\n0\r\n\r\n")
                else:
                    length = head.partition(b"content-length:")[2].partition(b"\r")[0]
                    await reader.readexactly(int(length or 0))
                took = time.perf_counter() - start
                await asyncio.sleep(max(connections / per_second - took, 0))
                if b"connection: close" in head:
                    return

    clients = [asyncio.create_task(client(number)) for number in range(connections)]
    await asyncio.sleep(1)
    pipe.send("at work")
    while not pipe.poll():
        await asyncio.sleep(0.1)
    for task in clients:
        task.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    pipe.send(dict(answers))


def requests(attack: str, tenant: str) -> Iterator[bytes]:
    """Yield the requests of an attack, without end."""
    for number in itertools.count():
        host, path, more = "localhost", "/api/v1/agents/", ""
        if attack in ("description", "hosts", "tenants"):
            path = "/api/schema/"
        if attack == "hosts":
            host = f"localhost:{number % 60_000 + 1}"
        if attack in ("tenants", "keys", "addresses"):
            claimed = uuid4().hex if attack == "tenants" else tenant
            made_up = f"ks_{claimed}_{uuid4().hex[:12]}_{uuid4().hex}{uuid4().hex}"
            more = f"Authorization: Bearer {made_up}\r\n"
        yield f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode()


def _cuts(milliseconds: list[float]) -> str:
    cuts = statistics.quantiles(milliseconds, n=100, method="inclusive")
    return f"{cuts[49]:8.1f} {cuts[94]:8.1f}"


if __name__ == "__main__":
    main()
