"""Clients send messages while faults from a seed happen. Then sent and stored ones are compared."""

import itertools
import json
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx
import psycopg

from tests.end_to_end.deployment import PROJECT, Deployment, Tenant
from tests.servers.llm import LLMServer
from tests.survival.faults import CLOCK, FAKETIME, FAULTS, REPLIES_WORKERS, Fault
from tests.survival.llm import POISON, EchoServer

SLUGS = ["oak", "elm", "ash"]
USERS = ("maria", "bob")
# The language model permanently refuses one in this number of messages.
POISON_EVERY = 7
SETTLE_SECONDS = 240


class Processes(Deployment):
    """A deployment with a process for each queue, and two for replies.

    Where libfaketime is installed, Postgres has a clock that can be set. Python itself does not
    run with the library: time.sleep fails.
    """

    def __init__(self, home: Path, llm: LLMServer, slugs: list[str]) -> None:
        super().__init__(home, llm, slugs)
        if FAKETIME:
            (home / CLOCK).write_text("+0")
            clock = {
                "LD_PRELOAD": str(FAKETIME),
                "FAKETIME_TIMESTAMP_FILE": f"../{CLOCK}",
                "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
            # Postgres does not get the environment of the process that starts it.
            (home / "sitecustomize.py").write_text(
                "from konstruct.local.services import Postgres\n"
                f"Postgres.environment |= {clock!r}\n"
            )
            self.environment["PYTHONPATH"] = f"{home}{os.pathsep}{PROJECT}"

    def _start_workers(self, stack: ExitStack) -> None:
        replies = ["replies"] * REPLIES_WORKERS
        for name in (*replies, "deliveries", "embeddings", "sweeps"):
            command = ["manage.py", "worker", name]
            self.workers.append(self._supervised(stack, f"{name}-{len(self.workers)}", command))


@dataclass
class Report:
    """The figures of a run."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    answered: int = 0
    given_up: int = 0
    lost: int = 0
    duplicated: int = 0
    crossed: int = 0
    resent: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.accepted} messages under {self.faults.total()} faults in"
            f" {self.seconds:.0f} s; {self.answered} answered, {self.given_up} given up with a"
            f" reason, {self.resent} sent again by clients; {self.lost} lost,"
            f" {self.duplicated} duplicated, {self.crossed} crossed"
        )


class Client(threading.Thread):
    """A program that sends messages, and repeats them with the same key until it gets an id."""

    def __init__(self, tenant: Tenant, user: str, pause: float, messages: int | None) -> None:
        super().__init__(daemon=True)
        self.tenant, self.user = tenant, user
        self.sent: dict[str, set[str]] = {}
        self.resent = 0
        self._pause, self._messages = pause, messages
        self._stopping = threading.Event()

    def run(self) -> None:
        with self.tenant.client() as http:
            for number in itertools.islice(itertools.count(1), self._messages):
                if self._stopping.wait(self._pause):
                    return
                self._send(http, f"{self.tenant.slug}-{self.user}-{number}", number)

    def stop(self) -> None:
        """Send no new message; finish the current one."""
        self._stopping.set()

    def _send(self, http: httpx.Client, token: str, number: int) -> None:
        ids = self.sent[token] = set()
        poison = f" {POISON}" if number % POISON_EVERY == 0 else ""
        body = {
            "agent": "ada",
            "user_id": self.user,
            "content": f"I say {token}.{poison}",
            "thread_id": f"{self.user} {number % 2}",
        }
        while not ids:
            try:
                answer = http.post(
                    "/api/v1/messages/", json=body, headers={"Idempotency-Key": token}, timeout=15
                )
                if answer.status_code in (200, 202):
                    ids.add(answer.json()["id"])
                    continue
                assert answer.status_code in (429, 500, 502, 503, 504), answer.text
            except httpx.TransportError:
                pass  # it may have been accepted: the key prevents a duplicate
            self.resent += 1
            time.sleep(0.2)


def run(
    home: Path,
    *,
    seed: int,
    faults: list[Fault] | None = None,
    drawn: int = 0,
    minutes: float = 0.0,
    pause: float = 0.3,
    messages: int | None = None,
) -> Report:
    """Run a deployment, cause faults, and compare sent and stored messages.

    Args:
        faults: these; by default every fault once, in the seed's order.
        drawn: number of further faults at random.
        minutes: go on with faults at random for so long.
        pause: between two messages of a user.
        messages: number for each user; by default they stop when the faults do.
    """
    random, report = Random(seed), Report(seed)
    with EchoServer() as llm, Processes(home, llm, SLUGS).running() as deployment:
        tenants = deployment.tenants
        clients = [Client(tenant, user, pause, messages) for tenant in tenants for user in USERS]
        began = time.monotonic()
        for client in clients:
            client.start()
        chosen = random.sample(FAULTS, len(FAULTS)) if faults is None else list(faults)
        chosen += random.choices(FAULTS, k=drawn)
        for fault in _with_more(chosen, random, began + 60 * minutes):
            time.sleep(random.uniform(0.3, 1.2))
            fault(deployment, random)
            report.faults[fault.__name__] += 1
        for client in clients:
            if messages is None:
                client.stop()
        for client in clients:
            client.join(SETTLE_SECONDS)
            assert not client.is_alive(), f"{client.user} of {client.tenant.slug} still sends"
        _settle(tenants)
        report.seconds = time.monotonic() - began
        _count(report, clients, llm)
        books = deployment._run("manage.py", "verify_memory", "--json")
        assert all(ledger["findings"] == [] for ledger in json.loads(books)), books
    return report


def _with_more(chosen: list[Fault], random: Random, until: float) -> Iterator[Fault]:
    yield from chosen
    while time.monotonic() < until:
        yield random.choice(FAULTS)


def _settle(tenants: Sequence[Tenant]) -> None:
    """Wait until everything is done. Fail after SETTLE_SECONDS without progress.

    After half an hour of faults thousands of jobs wait, and a correct deployment may take long as
    long as it makes progress.
    """
    fewest, since = math.inf, time.monotonic()
    while waiting := sum(map(_waiting, tenants)):
        if waiting < fewest:
            fewest, since = waiting, time.monotonic()
        assert time.monotonic() - since < SETTLE_SECONDS, (
            f"{waiting} messages wait, and it has been no fewer for {SETTLE_SECONDS} seconds"
        )
        time.sleep(0.2)


def _waiting(tenant: Tenant) -> float:
    """Return the number of waiting replies and embeddings that can still be stored."""
    try:
        ((waiting,),) = tenant.rows(
            "SELECT (SELECT count(*) FROM orchestrator_pendingreply WHERE failed_at IS NULL)"
            " + (SELECT count(*) FROM memory_pendingembedding AS pending"
            "    JOIN memory_message AS message ON message.id = pending.message_id"
            "    WHERE message.user_id <> 'poisoner')"
        )
    except psycopg.OperationalError:
        return math.inf  # the last fault has not ended yet
    return float(waiting)


def _count(report: Report, clients: list[Client], llm: EchoServer) -> None:
    """Compare the answers to clients with the rows."""
    report.crossed += len(llm.crossed)
    for tenant in {client.tenant.slug: client.tenant for client in clients}.values():
        rows = tenant.rows(
            "SELECT split_part(split_part(asked.content, 'I say ', 2), '.', 1), asked.id::text,"
            " asked.content, reply.content,"
            " pending.last_error, (SELECT count(*) FROM memory_conversationembedding AS piece"
            "  WHERE piece.message_id IN (asked.id, reply.id))"
            " FROM memory_message AS asked"
            " LEFT JOIN memory_message AS reply ON reply.in_reply_to_id = asked.id"
            " LEFT JOIN orchestrator_pendingreply AS pending ON pending.message_id = asked.id"
            " WHERE asked.idempotency_key IS NOT NULL"
        )
        standing = {key: row for key, *row in rows}
        report.duplicated += len(rows) - len(standing)
        for client in clients:
            if client.tenant is not tenant:
                continue
            report.resent += client.resent
            for token, ids in client.sent.items():
                report.accepted += 1
                _count_one(report, token, ids, standing.pop(token, None))
        report.crossed += len(standing)  # tokens that no client of this tenant has sent


def _count_one(report: Report, token: str, ids: set[str], row: list[object] | None) -> None:
    if row is None:
        report.lost += 1
        return
    message_id, content, reply, error, pieces = row
    report.duplicated += ids != {message_id}
    report.crossed += token not in str(content)
    if reply is not None:
        report.answered += 1
        report.crossed += reply != f"Heard {token}."
        report.lost += pieces != 2
    elif error:
        report.given_up += 1
    else:
        report.lost += 1
